extension NotificationInfo {
    /// All members of the wire form: the ten of CloudKit Web Services, the further ones of the
    /// native class under their native names (for titles also under the service's), and ours.
    static let members =
        [
            "alertBody", "alertLocalizationKey", "alertLocalizationArgs", "title", "subtitle",
            "alertActionLocalizationKey", "alertLaunchImage", "soundName", "shouldBadge",
            "shouldSendContentAvailable", "shouldSendMutableContent", "category", "collapseIDKey",
            "additionalFields", "desiredKeys", "expirationSeconds", "priority",
        ] + TitleNames.native.all + TitleNames.service.all

    /// Reads the wire form.
    ///
    /// `additionalFields` is the web service's name of `desiredKeys`. Either name is accepted, and
    /// the answer uses the same one.
    ///
    /// - Throws: ``JSONContractError`` at the first member that is unknown, of the wrong kind, or
    ///   beyond a limit.
    public init(json: JSONValue, path: String) throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(Self.members)
        self.init()
        alertBody = try reader.text("alertBody")
        alertLocalizationKey = try reader.text("alertLocalizationKey")
        alertLocalizationArgs = try reader.fieldNames("alertLocalizationArgs")
        try readTitles(reader)
        alertActionLocalizationKey = try reader.text("alertActionLocalizationKey")
        alertLaunchImage = try reader.text("alertLaunchImage")
        soundName = try reader.text("soundName")
        category = try reader.text("category")
        shouldBadge = try reader.bool("shouldBadge") ?? false
        shouldSendContentAvailable = try reader.bool("shouldSendContentAvailable") ?? false
        shouldSendMutableContent = try reader.bool("shouldSendMutableContent") ?? false
        try readDelivery(reader)
    }

    /// Reads the titles under either set of names.
    ///
    /// In the answers of the web service, the titles of subscriptions that native clients saved
    /// have names of their own (`titleLocalizedKey`) and not those of the native class. Clients
    /// read back the names that they used.
    private mutating func readTitles(_ reader: JSONReader) throws(JSONContractError) {
        let isService = TitleNames.service.all.contains { reader.value($0) != nil }
        let names: TitleNames = isService ? .service : .native
        if isService, let other = TitleNames.native.all.first(where: { reader.value($0) != nil }) {
            throw reader.failure(
                other,
                "is a native class's name beside names of the web service: use the names of only "
                    + "one"
            )
        }
        titleNames = names
        title = try reader.text("title")
        titleLocalizationKey = try reader.text(names.titleKey)
        titleLocalizationArgs = try reader.fieldNames(names.titleArguments)
        subtitle = try reader.text("subtitle")
        subtitleLocalizationKey = try reader.text(names.subtitleKey)
        subtitleLocalizationArgs = try reader.fieldNames(names.subtitleArguments)
    }

    private mutating func readDelivery(_ reader: JSONReader) throws(JSONContractError) {
        collapseIDKey = try reader.text("collapseIDKey")
        if let key = collapseIDKey, !key.isPlainName(upTo: Limits.maximumCollapseIDBytes) {
            throw reader.failure(
                "collapseIDKey",
                "must be 1 to \(Limits.maximumCollapseIDBytes) UTF-8 bytes without control "
                    + "characters (APNs)")
        }
        desiredKeysName =
            reader.value("desiredKeys") == nil ? .additionalFields : .desiredKeys
        desiredKeys = try reader.fieldNames(
            desiredKeysName.rawValue, atMost: Limits.maximumDesiredKeys)
        guard desiredKeysName == .additionalFields || reader.value("additionalFields") == nil
        else {
            throw reader.failure(
                "additionalFields", "is another name of desiredKeys: give only one of the two")
        }
        expirationSeconds = try reader.integer("expirationSeconds")
        if let seconds = expirationSeconds, !(0...31_536_000).contains(seconds) {
            throw reader.failure("expirationSeconds", "must be 0 to 31536000")
        }
        priority = try reader.integer("priority")
        if let priority, ![1, 5, 10].contains(priority) {
            throw reader.failure("priority", "must be 1, 5 or 10 (APNs)")
        }
        if let priority, priority != 5, !mentionsAlert {
            throw reader.failure("priority", Self.backgroundRule(priority))
        }
    }

    static func backgroundRule(_ priority: Int64) -> String {
        "\(priority) needs an alert, a sound or a badge: background pushes must have 5 (APNs)"
    }

    /// The wire form; members without a value are left out.
    public var json: JSONValue {
        var object = JSONObject()
        object.set("alertBody", alertBody)
        object.set("alertLocalizationKey", alertLocalizationKey)
        object.set("alertLocalizationArgs", alertLocalizationArgs)
        object.set("title", title)
        object.set(titleNames.titleKey, titleLocalizationKey)
        object.set(titleNames.titleArguments, titleLocalizationArgs)
        object.set("subtitle", subtitle)
        object.set(titleNames.subtitleKey, subtitleLocalizationKey)
        object.set(titleNames.subtitleArguments, subtitleLocalizationArgs)
        object.set("alertActionLocalizationKey", alertActionLocalizationKey)
        object.set("alertLaunchImage", alertLaunchImage)
        object.set("soundName", soundName)
        object.set("category", category)
        object["shouldBadge"] = shouldBadge ? true : nil
        object["shouldSendContentAvailable"] = shouldSendContentAvailable ? true : nil
        object["shouldSendMutableContent"] = shouldSendMutableContent ? true : nil
        object.set("collapseIDKey", collapseIDKey)
        object.set(desiredKeysName.rawValue, desiredKeys)
        // An explicit empty `desiredKeys` is answered as it was sent. An empty `additionalFields`
        // is left out, because that name is also the default if the client sent neither.
        if desiredKeys.isEmpty, desiredKeysName == .desiredKeys { object["desiredKeys"] = [] }
        object["expirationSeconds"] = expirationSeconds.map { .integer($0) }
        object["priority"] = priority.map { .integer($0) }
        return .object(object)
    }
}

extension NotificationInfo.TitleNames {
    var titleKey: String { self == .native ? "titleLocalizationKey" : "titleLocalizedKey" }

    package var titleArguments: String {
        self == .native ? "titleLocalizationArgs" : "titleLocalizedArguments"
    }

    var subtitleKey: String {
        self == .native ? "subtitleLocalizationKey" : "subtitleLocalizedKey"
    }

    package var subtitleArguments: String {
        self == .native ? "subtitleLocalizationArgs" : "subtitleLocalizedArguments"
    }

    /// All four names.
    var all: [String] { [titleKey, titleArguments, subtitleKey, subtitleArguments] }
}

extension JSONReader {
    /// Reads a text of a notification, up to its limit.
    func text(_ name: String) throws(JSONContractError) -> String? {
        guard let text = try string(name) else { return nil }
        guard text.utf8.count <= Limits.maximumNotificationTextBytes else {
            throw failure(
                name, "longer than \(Limits.maximumNotificationTextBytes) bytes in UTF-8")
        }
        return text
    }

    /// Reads a list of field names, up to a limit.
    func fieldNames(
        _ name: String, atMost limit: Int = Limits.maximumLocalizationArguments
    ) throws(JSONContractError) -> [String] {
        let names = try strings(name) ?? []
        guard names.count <= limit else {
            throw failure(name, "more than \(limit) field names")
        }
        for (index, field) in names.enumerated()
        where !field.isPlainName(upTo: Limits.maximumNameBytes) {
            throw failure("\(name)[\(index)]", "not a field name")
        }
        return names
    }
}

extension JSONObject {
    mutating func set(_ name: String, _ text: String?) {
        self[name] = text.map { .string($0) }
    }

    mutating func set(_ name: String, _ texts: [String]) {
        self[name] = texts.isEmpty ? nil : .array(texts.map { .string($0) })
    }
}
