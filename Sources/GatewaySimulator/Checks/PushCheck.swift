/// APNs' rules for a single push, except those for provider tokens and devices.
///
/// Method and path are checked first, then the provider token (an unauthenticated sender learns
/// nothing more), then the headers, the payload, and finally the device.
struct PushCheck {
    /// The maximum number of bytes of a collapse identifier (Apple).
    static let maximumCollapseIDBytes = 64
    /// The maximum number of bytes of a topic.
    ///
    /// Apple states none; bundle IDs are far shorter.
    static let maximumTopicBytes = 255
    /// The maximum number of digits of a device token.
    ///
    /// An APNs token has 64 today and may grow.
    static let maximumTokenDigits = 512

    /// The header block, in the order of arrival.
    let headers: [HeaderField]
    /// The bytes of the body.
    let payload: [UInt8]
    /// What to do about a push without `apns-push-type`.
    let missingPushType: MissingPushTypePolicy

    /// Returns the device token of a path `/3/device/<token>` in lower case, valid or not; `nil`
    /// for other paths.
    static func token(inPath path: String) -> String? {
        let prefix = "/3/device/"
        guard path.hasPrefix(prefix) else { return nil }
        let token = path.dropFirst(prefix.count)
        return token.contains("/") ? nil : token.lowercased()
    }

    /// Checks method and path.
    func checkRoute() throws(PushFault) {
        guard headers[":method"] == "POST" else {
            throw PushFault(405, "MethodNotAllowed", "the method must be POST")
        }
        guard let token = Self.token(inPath: headers[":path"] ?? "") else {
            throw PushFault(404, "BadPath", "the path must be '/3/device/' and a device token")
        }
        guard !token.isEmpty else {
            throw PushFault(400, "MissingDeviceToken", "the path ends without a device token")
        }
    }

    /// Checks the headers, the device token and the payload, and returns the topic.
    func checkContent() throws(PushFault) -> String {
        try checkDuplicates()
        try checkToken()
        let topic = try checkTopic()
        let kind = try checkPushType(topic: topic)
        try checkPriority(for: kind)
        try checkIdentifiers()
        try checkPayload(for: kind)
        return topic
    }
}

extension PushCheck {
    private func checkDuplicates() throws(PushFault) {
        var seen: Set<String> = []
        for header in headers
        where header.name.hasPrefix("apns-") || header.name == "authorization" {
            guard seen.insert(header.name).inserted else {
                throw PushFault(
                    400, "DuplicateHeaders", "the header '\(header.name)' occurs twice")
            }
        }
    }

    private func checkToken() throws(PushFault) {
        let token = Self.token(inPath: headers[":path"] ?? "") ?? ""
        guard token.utf8.count <= Self.maximumTokenDigits, token.utf8.count.isMultiple(of: 2),
            token.utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit })
        else {
            throw PushFault(
                400, "BadDeviceToken",
                "a device token is an even number of hexadecimal digits, at most "
                    + "\(Self.maximumTokenDigits)")
        }
    }

    private func checkTopic() throws(PushFault) -> String {
        guard let topic = headers["apns-topic"], !topic.isEmpty else {
            throw PushFault(400, "MissingTopic", "the header 'apns-topic' is required")
        }
        guard topic.utf8.count <= Self.maximumTopicBytes,
            topic.utf8.allSatisfy(Self.isTopicByte)
        else {
            throw PushFault(
                400, "BadTopic",
                "'apns-topic' must be a bundle ID: letters, digits, '.', '-' and '_'")
        }
        return topic
    }

    private func checkPushType(topic: String) throws(PushFault) -> PushKind {
        guard let type = headers["apns-push-type"] else {
            guard missingPushType == .refused else { return .alert }
            throw PushFault(400, "InvalidPushType", "the header 'apns-push-type' is required here")
        }
        guard let kind = PushKind(rawValue: type) else {
            let allowed = PushKind.allCases.map(\.rawValue).joined(separator: ", ")
            throw PushFault(
                400, "InvalidPushType", "'apns-push-type' must be one of \(allowed)")
        }
        guard topic.hasSuffix(kind.topicSuffix) else {
            throw PushFault(
                400, "BadTopic",
                "'apns-topic' of a \(type) push must end with '\(kind.topicSuffix)'")
        }
        return kind
    }

    private func checkPriority(for kind: PushKind) throws(PushFault) {
        let text = headers["apns-priority"] ?? "10"
        guard let priority = Int(text), ["1", "5", "10"].contains(text) else {
            throw PushFault(400, "BadPriority", "'apns-priority' must be 1, 5 or 10")
        }
        guard kind.priorities.contains(priority) else {
            let allowed = kind.priorities.sorted().map(String.init).joined(separator: " or ")
            throw PushFault(
                400, "BadPriority",
                "'apns-priority' of a \(kind.rawValue) push must be \(allowed); absent means 10")
        }
    }

    private func checkIdentifiers() throws(PushFault) {
        if let apnsID = headers["apns-id"], !Self.isCanonicalUUID(apnsID) {
            throw PushFault(
                400, "BadMessageId",
                "'apns-id' must be a UUID in canonical form, in lower case")
        }
        if let expiration = headers["apns-expiration"] {
            guard !expiration.isEmpty, Int64(expiration) != nil,
                expiration.utf8.allSatisfy({ (0x30...0x39).contains($0) })
            else {
                throw PushFault(
                    400, "BadExpirationDate",
                    "'apns-expiration' must be whole seconds since 1970, or 0")
            }
        }
        if let collapseID = headers["apns-collapse-id"],
            collapseID.utf8.count > Self.maximumCollapseIDBytes
        {
            throw PushFault(
                400, "BadCollapseId",
                "'apns-collapse-id' has \(collapseID.utf8.count) bytes, at most "
                    + "\(Self.maximumCollapseIDBytes) are allowed")
        }
    }

    private func checkPayload(for kind: PushKind) throws(PushFault) {
        guard !payload.isEmpty else {
            throw PushFault(400, "PayloadEmpty", "the body is empty")
        }
        guard payload.count <= kind.maximumPayloadBytes else {
            throw PushFault(
                413, "PayloadTooLarge",
                "the body is larger than \(kind.maximumPayloadBytes) bytes")
        }
        if let fault = JSONText.fault(in: payload) {
            throw PushFault(
                400, "PayloadEmpty",
                "the body is not a JSON object: at byte \(fault.offset), \(fault.expected) "
                    + "was expected")
        }
    }

    private static func isTopicByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: ".-_".utf8.contains(byte)
        }
    }

    /// Returns whether `text` is a UUID: 8-4-4-4-12 hexadecimal digits in lower case.
    static func isCanonicalUUID(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == 36 else { return false }
        return bytes.enumerated().allSatisfy { index, byte in
            switch index {
            case 8, 13, 18, 23: byte == UInt8(ascii: "-")
            default: (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
            }
        }
    }
}
