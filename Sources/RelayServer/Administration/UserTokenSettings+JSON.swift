import RelayModel
import Storage

extension UserTokenSettings {
    /// Reads how user tokens are verified; at least one way is required.
    init(_ reader: JSONReader) throws(JSONContractError) {
        try reader.allowOnly(["sharedSecret", "keySet", "issuer", "audience", "userClaim"])
        self.init(
            sharedSecret: try reader.string("sharedSecret"),
            keySet: try Self.keySet(reader), issuer: try reader.string("issuer"),
            audience: try reader.string("audience"),
            userClaim: try reader.string("userClaim") ?? "sub")
        if let sharedSecret, sharedSecret.utf8.count < 32 {
            // RFC 7518 §3.2: the key must have at least the size of the hash.
            throw reader.failure("sharedSecret", "must be at least 32 bytes (RFC 7518, HS256)")
        }
        if let sharedSecret, sharedSecret.utf8.count > Self.mostSecretBytes {
            throw reader.failure("sharedSecret", "must be at most \(Self.mostSecretBytes) bytes")
        }
        guard sharedSecret != nil || keySet != nil else {
            throw reader.failure("sharedSecret", "one of sharedSecret and keySet is required")
        }
        // No token has an empty claim, so no user could ever sign in.
        for name in ["issuer", "audience", "userClaim"] where reader.value(name) == "" {
            throw reader.failure(name, "must not be empty; leave it out instead")
        }
    }

    // Every user token is verified against the whole key set, and that time is shared by all
    // containers. Identity providers publish about ten keys, of one to three kilobytes each.
    private static let mostSecretBytes = 8192
    private static let mostKeySetBytes = 65_536
    private static let mostKeys = 50

    /// Reads a key set, which may be given as an object or as its text.
    private static func keySet(_ reader: JSONReader) throws(JSONContractError) -> String? {
        let text: String
        switch reader.value("keySet") {
        case nil: return nil
        case .string(let given): text = given
        case let json?: text = json.text
        }
        guard text.utf8.count <= mostKeySetBytes else {
            throw reader.failure("keySet", "must be at most \(mostKeySetBytes) bytes")
        }
        if let member = JSONWebKeySet.secretMember(of: text) {
            throw reader.failure(
                "keySet",
                "\(member) is the secret part of a key, which only its owner may have: give only "
                    + "the public part, without \"d\", \"p\", \"q\", \"dp\", \"dq\", \"qi\", "
                    + "\"oth\" and \"k\"")
        }
        let keys: Int
        do {
            keys = try JSONWebKeySet(text: text).keys.count
        } catch {
            throw reader.failure("keySet", error.reason)
        }
        guard keys <= mostKeys else {
            throw reader.failure("keySet", "must have at most \(mostKeys) keys, found \(keys)")
        }
        return text
    }

    /// The settings without the secret, as JSON.
    var shownJSON: JSONValue {
        var object: JSONObject = ["userClaim": .string(userClaim)]
        object["sharedSecret"] = sharedSecret == nil ? nil : "(hidden)"
        object["keySet"] = keySet.flatMap { JSONWebKeySet.shown($0) }
        object["issuer"] = issuer.map { .string($0) }
        object["audience"] = audience.map { .string($0) }
        return .object(object)
    }
}
