import RelayModel

extension ChangeSource {
    /// Returns the headers that a later decoding of the same body needs.
    func replayHeaders(_ headers: WebhookHeaders) -> [String: String] {
        var names = deliveryHeadersToKeep + ["content-type"] + presetHeaders
        for case .header(let name) in mapping.allPlaces where headers[name] != nil {
            names.append(name)
        }
        if preset == .cloudevents { names += headers.names.filter { $0.hasPrefix("ce-") } }
        var kept: [String: String] = [:]
        for name in names where !isSecret(name) { kept[name.lowercased()] = headers[name] }
        return kept
    }

    /// The headers that name a delivery; none for rows from a database's log, which have positions
    /// of their own.
    ///
    /// After a crash, such a row comes again in another request and must be parked only once.
    private var deliveryHeadersToKeep: [String] { preset == .postgres ? [] : Self.deliveryHeaders }

    private var presetHeaders: [String] {
        switch preset {
        case .appwrite: ["x-appwrite-webhook-events", "x-appwrite-webhook-user-id"]
        case .minapp: ["x-hydrogen-trigger-event"]
        case .strapi: ["x-strapi-event"]
        case .belfry, .debezium, .supabase, .hasura, .cloudevents, .parse, .mongodb, .dynamodb,
            .directus, .wal2json, .airtable, .cloudkit, .postgres, .custom:
            []
        }
    }

    private func isSecret(_ header: String) -> Bool {
        let name = header.lowercased()
        if case .header(let secret) = verification.scheme, secret.lowercased() == name {
            return true
        }
        return ["authorization", "cookie", "proxy-authorization"].contains(name)
    }

    /// Refuses a request that can be refused without parsing its body.
    func checkForm(_ request: WebhookRequest) throws(DecodeError) {
        guard request.method == "POST" else {
            throw DecodeError(
                .methodNotAllowed,
                reason: "changes must be posted with the method POST\(methodHint)")
        }
        guard request.body.count <= maximumBodyBytes else {
            throw DecodeError(
                .tooLarge,
                reason: "the body has \(request.body.count) bytes; \(maximumBodyBytes) are allowed")
        }
        let encoding = request.headers["Content-Encoding"]?.lowercased() ?? "identity"
        guard encoding == "identity" || encoding.isEmpty else {
            throw DecodeError(
                .unsupportedMediaType, reason: "the body must not be compressed (\(encoding))")
        }
        try checkMediaType(request.headers["Content-Type"])
    }

    /// A hint where to set the HTTP method, for senders whose default is not POST.
    private var methodHint: String {
        switch preset {
        case .supabase: "; set the webhook's method to POST: with GET Supabase sends no row"
        case .directus: "; set the method of the flow's operation to POST: its default is GET"
        default: ""
        }
    }

    private func checkMediaType(_ contentType: String?) throws(DecodeError) {
        // Nearly all sources send exactly this, and parsing a media type costs more than all other
        // checks.
        if contentType == "application/json" { return }
        let type = contentType.map(Self.mediaType) ?? ""
        let isReadable =
            type.isEmpty || type == "application/json" || type.hasSuffix("+json")
            || type == "text/json" || type == "text/plain"
            // The content type that curl sends by default.
            || (preset == .belfry && type == "application/x-www-form-urlencoded")
            || (preset == .minapp && type != "application/x-www-form-urlencoded")
        guard isReadable else {
            throw DecodeError(
                .unsupportedMediaType,
                reason: "the content type must be application/json, found \(type)")
        }
    }

    /// Returns the media type in lower case, without parameters.
    static func mediaType(_ contentType: String) -> String {
        let type = contentType.split(separator: ";").first ?? ""
        return type.filter { !$0.isWhitespace }.lowercased()
    }

    /// Parses the JSON document in the body.
    func body(of request: WebhookRequest) throws(DecodeError) -> JSONValue {
        if preset == .minapp {
            guard let token = try? SignedToken(request.body) else {
                throw DecodeError(.malformed, reason: "\(VerificationError.malformedToken)")
            }
            return try Self.parse(token.payload)
        }
        if isEventInBinaryMode(request) { return try CloudEventReading.structured(request) }
        return try Self.parse(request.body)
    }

    /// The byte order mark that some senders put before UTF-8 text, although JSON has none (RFC
    /// 8259, 8.1).
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    static func parse(_ bytes: [UInt8]) throws(DecodeError) -> JSONValue {
        let isMarked = bytes.starts(with: byteOrderMark)
        do {
            return try JSONValue(parsing: isMarked ? Array(bytes.dropFirst(3)) : bytes)
        } catch {
            throw DecodeError(.malformed, reason: "the body is \(error)")
        }
    }

    /// Divides a body into its changes.
    ///
    /// An array holds one change in each element, whatever the content type says.
    func divide(
        _ body: JSONValue, headers: WebhookHeaders
    ) throws(DecodeError) -> [SourceItem] {
        let (list, path) = try batch(in: body)
        guard let list else {
            return [
                SourceItem(value: body, path: "", index: nil, headers: headers, source: self)
            ]
        }
        guard list.count <= Limits.maximumChangesPerRequest else {
            throw DecodeError(
                .tooLarge, path: path,
                reason: "\(list.count) changes; \(Limits.maximumChangesPerRequest) are allowed")
        }
        let kept = KeptHeaders()
        return list.enumerated().map { index, value in
            SourceItem(
                value: value, path: "\(path)[\(index)]", index: index, headers: headers,
                source: self, kept: kept)
        }
    }

    private func batch(
        in body: JSONValue
    ) throws(DecodeError) -> (list: [JSONValue]?, path: String) {
        if let items = mapping.body?.items {
            guard case .array(let list)? = items.value(in: body) else {
                throw DecodeError(
                    .unmappable, path: items.description,
                    reason: "the mapping's \"items\" is not an array")
            }
            return (list, items.description)
        }
        if case .array(let list) = body { return (list, "") }
        let member: String
        switch preset {
        case .belfry: member = "changes"
        case .dynamodb: member = "Records"
        case .airtable: member = "payloads"
        case .cloudkit: member = Self.cloudKitList(body)
        default: return (nil, "")
        }
        guard case .object(let object) = body, let value = object[member] else { return (nil, "") }
        guard case .array(let list) = value, preset != .belfry || object.members.count == 1 else {
            throw DecodeError(
                .unmappable, path: member,
                reason: "must be an array, and the only member of its object")
        }
        return (list, member)
    }

    /// Returns the member with the records of an answer.
    ///
    /// An answer to `changes/zone` has several zones.
    private static func cloudKitList(_ body: JSONValue) -> String {
        if case .object(let object) = body, object["zones"] != nil { "zones" } else { "records" }
    }

    /// Returns the parts of an unmappable change that may be stored: everything except credentials.
    func kept(_ json: JSONValue) -> JSONValue {
        switch preset {
        case .parse: ParseReading.withoutCredentials(json)
        case .directus: DirectusReading.withoutCredentials(json)
        default: json
        }
    }

    /// Creates the parked form of a whole body, with the error.
    ///
    /// That is a body that could not be divided, or one with a change that conflicts with an
    /// earlier one.
    package func parked(
        _ body: [UInt8], _ error: DecodeError, _ headers: WebhookHeaders
    ) -> ParkedBody {
        let raw =
            (try? JSONValue(parsing: body)).map(kept)
            ?? ["$bytes": .string(Base64.encode(body))]
        return ParkedBody(
            reason: error.reason, path: error.path, raw: raw, index: nil,
            headers: replayHeaders(headers))
    }
}
