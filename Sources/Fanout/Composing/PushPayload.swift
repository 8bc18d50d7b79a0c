import RelayModel

/// The parts of a push payload, which can be left out one by one until it fits.
struct PushPayload: Sendable {
    /// The form of an alert that consists of a text alone.
    enum AlertForm: Sendable {
        /// As a bare string, as CloudKit's pushes do.
        case compact
        /// As a dictionary, which every client of the web courier can read.
        ///
        /// CloudKit JS loses a bare string.
        case dictionary
    }

    /// The alert.
    var alert: JSONObject
    /// The alert with the values of fields in its texts cut, if it has such values.
    var shorterAlert: JSONObject?
    /// The badge.
    var badge: Int64?
    var sound: String?
    /// The category of actions.
    var category: String?
    /// Whether the push wakes the application in the background.
    var isContentAvailable = false
    /// Whether a service extension may change the push.
    var isMutable = false
    /// `ce`, `cid`, `ckuserid`, `nid`.
    var envelope: JSONObject
    /// `qry`, `fet` or `met`.
    var bodyName: String
    /// The content of the dictionary `bodyName`.
    var body: JSONObject
    /// The position of the change, by which a client tells older pushes from newer ones (Belfry's
    /// own).
    var sequence: LogPosition?
    /// Whether any part was left out.
    var isPruned = false
    /// The form of an alert that consists of a text alone.
    var alertForm = AlertForm.compact
    /// Whether the field values are longer than any payload, and are therefore missing here.
    var isWithoutValues = false

    /// Returns the JSON text.
    func utf8() -> [UInt8] {
        var aps = JSONObject()
        if !alert.members.isEmpty { aps["alert"] = writtenAlert }
        aps["badge"] = badge.map { .integer($0) }
        aps["sound"] = sound.map { .string($0) }
        aps["category"] = category.map { .string($0) }
        if isContentAvailable { aps["content-available"] = 1 }
        if isMutable { aps["mutable-content"] = 1 }
        var ck = envelope
        if !body.members.isEmpty { ck[bodyName] = .object(body) }
        if isPruned { ck["p"] = 1 }
        var payload: JSONObject = ["aps": .object(aps), "ck": .object(ck)]
        payload["belfry"] = sequence.map { ["seq": .string($0.description)] }
        var output: [UInt8] = []
        output.reserveCapacity(512)
        payload.write(to: &output)
        return output
    }

    private var writtenAlert: JSONValue {
        if alertForm == .compact, alert.members.count == 1, let text = alert["body"] { return text }
        return .object(alert)
    }

    /// Returns the JSON text, with parts left out until it fits
    /// ``RelayModel/Limits/maximumPayloadBytes``.
    ///
    /// The order follows CloudKit's header on pruning, with two exceptions. The container is kept,
    /// as in the pruned pushes that have been observed. The field values are left out first, as
    /// Apple's newer page says (docs/decisions/0008-payload-pruning.md).
    func fitted() -> [UInt8] {
        var payload = self
        payload.shorten()
        var text = payload.utf8()
        guard text.count > Limits.maximumPayloadBytes else { return text }
        // CloudKit's clients do not know `seq`, so the payload does not count as pruned yet.
        payload.sequence = nil
        text = payload.utf8()
        for step in Self.pruning where text.count > Limits.maximumPayloadBytes {
            step(&payload)
            payload.isPruned = true
            text = payload.utf8()
        }
        return text
    }

    /// The steps of pruning after Belfry's `seq` was left out, first to last.
    ///
    /// The notification's ID, its container and user, and the badge always stay: together they are
    /// far below the limit. Part of the alert stays too, because a push that APNs accepts as an
    /// alert must show, sound or badge something.
    private static let pruning: [@Sendable (inout PushPayload) -> Void] = [
        { $0.body["af"] = nil },
        { $0.cutArguments() },
        { payload in for key in ["rid", "zid", "zoid"] { payload.body[key] = nil } },
        { $0.body["fo"] = nil },
        { $0.body = [:] },
        { $0.dropSound() },
        { $0.alert["launch-image"] = nil },
        { $0.alert["action-loc-key"] = nil },
        { $0.dropText("subtitle") },
        { $0.dropText("subtitle-loc-key") },
        { $0.dropText("body") },
        { $0.alert["loc-args"] = nil },
        { $0.alert["title-loc-args"] = nil },
        { $0.alert["subtitle-loc-args"] = nil },
        { $0.category = nil },
        { payload in for text in texts.reversed() { payload.dropText(text) } },
        { $0.cutText() },
    ]

    /// The texts of an alert, most important first.
    private static let texts = [
        "loc-key", "body", "title-loc-key", "title", "subtitle-loc-key", "subtitle",
    ]

    /// Removes the body text of the alert.
    mutating func dropBody() {
        for name in ["body", "loc-key", "loc-args"] { alert[name] = nil }
    }

    /// Removes a text and its arguments, unless it is the last text that shows something.
    private mutating func dropText(_ name: String) {
        let others = Self.texts.filter { $0 != name && alert[$0] != nil }
        let isLast = shows(name) ? !others.contains(where: shows) : others.isEmpty
        guard !isLast, alert[name] != nil else { return }
        alert[name] = nil
        if name.hasSuffix("loc-key") { alert[name.dropLast(3) + "args"] = nil }
    }

    /// Returns whether the alert has that text, and the text does not consist of blanks alone.
    ///
    /// A key counts whatever it is, because the app has the text.
    private func shows(_ name: String) -> Bool {
        guard case .string(let text)? = alert[name] else { return false }
        return name.hasSuffix("loc-key")
            || !text.unicodeScalars.allSatisfy(\.properties.isWhitespace)
    }

    /// Removes the sound, unless the push has nothing else to show.
    ///
    /// Then the system's sound replaces it.
    private mutating func dropSound() {
        let hasOther = badge != nil || Self.texts.contains(where: shows)
        sound = hasOther || sound == nil ? nil : "default"
    }

    /// Cuts the last text until the payload fits.
    ///
    /// A localization key that was cut no longer names a text, so the device shows the key itself,
    /// which is better than nothing. Saving refuses keys that can never fit.
    private mutating func cutText() {
        guard let name = Self.texts.first(where: { alert[$0] != nil }),
            case .string(let text)? = alert[name]
        else { return }
        // Cut by scalars, because one character may have any number of them.
        let scalars = Array(text.unicodeScalars)
        func cut(_ count: Int) -> PushPayload {
            var payload = self
            var kept = String.UnicodeScalarView(scalars.prefix(count))
            kept.append("…")
            payload.alert[name] = .string(String(kept))
            return payload
        }
        var (fits, over) = (0, scalars.count)
        while over - fits > 1 {
            let middle = (fits + over) / 2
            if cut(middle).utf8().count <= Limits.maximumPayloadBytes {
                fits = middle
            } else {
                over = middle
            }
        }
        self = cut(fits)
    }

    // MARK: Arguments

    private static let argumentLists = ["loc-args", "title-loc-args", "subtitle-loc-args"]

    /// Returns whether the payload certainly has more than `most` bytes, without writing it.
    func isLonger(than most: Int) -> Bool { isWithoutValues || argumentBytes > most }

    private var argumentBytes: Int {
        var bytes = 0
        for name in Self.argumentLists {
            guard case .array(let elements)? = alert[name] else { continue }
            for case .string(let text) in elements { bytes += text.utf8.count }
        }
        return bytes
    }

    /// Applies the first steps of ``pruning`` in advance if the payload is certainly too long.
    ///
    /// Each step of ``pruning`` writes the whole payload, and one change may fill the texts of
    /// thousands of pushes with a megabyte each.
    private mutating func shorten() {
        let hasLongArguments = argumentBytes > Limits.maximumPayloadBytes
        guard isWithoutValues || hasLongArguments else { return }
        sequence = nil
        body["af"] = nil
        isPruned = true
        if hasLongArguments { cutArguments() }
    }

    private mutating func cutArguments() {
        if let shorterAlert { alert = shorterAlert }
        shorterAlert = nil
        for name in Self.argumentLists { alert[name] = alert[name].map(Self.cut) }
    }

    /// Cuts arguments to the length to which CloudKit may cut them (CKSubscription.h).
    ///
    /// Arguments are values of the record and may have any length, and a long one must not push out
    /// every other part.
    private static func cut(_ arguments: JSONValue) -> JSONValue {
        guard case .array(let elements) = arguments else { return arguments }
        return .array(
            elements.map { element in
                guard case .string(let text) = element else { return element }
                return .string(shortened(text))
            })
    }

    /// Cuts a value of the record to that length.
    static func shortened(_ text: String) -> String {
        // One character may have any number of scalars, as joined emoji do. The scalars are cut
        // first. Otherwise a whole megabyte would be read for each of thousands of pushes.
        let scalars = text.unicodeScalars.prefix(4 * Limits.cutArgumentCharacters)
        return String(Substring(scalars).prefix(Limits.cutArgumentCharacters))
    }
}
