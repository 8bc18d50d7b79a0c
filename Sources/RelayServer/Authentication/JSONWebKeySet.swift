import Crypto
import CryptoExtras
import RelayModel

/// The public keys of an identity provider (RFC 7517), those that can verify user tokens.
package struct JSONWebKeySet: Sendable {
    /// One usable public key.
    struct Key: Sendable {
        /// The `kid`.
        let id: String?
        /// The one algorithm that this key verifies: its kind decides, not the token.
        let algorithm: String
        let material: Material
        /// What tells it from others: ``identity(of:)``.
        let identity: [UInt8]
    }

    /// What a signature is verified with.
    enum Material: Sendable {
        case rsa(_RSA.Signing.PublicKey)
        case p256(P256.Signing.PublicKey)
        case ed25519(Curve25519.Signing.PublicKey)
    }

    /// The usable keys.
    let keys: [Key]

    /// Reads a key set; keys of other kinds and uses are passed over, as RFC 7517 §5 asks.
    ///
    /// - Throws: ``UserTokenRefusal/keySet(_:)`` if it is no key set, or no key in it is usable.
    package init(text: String) throws(UserTokenRefusal) {
        guard let json = try? JSONValue(parsing: text), case .object(let object) = json,
            case .array(let elements)? = object["keys"]
        else { throw .keySet("an object with the array \"keys\" is expected") }
        keys = elements.compactMap(Key.init(json:))
        guard !keys.isEmpty else {
            throw .keySet("it has no signing key for RS256 (2048 bits or more), ES256 or EdDSA")
        }
    }
}

// Identity providers publish public keys alone; libraries that make keys write both parts, and
// whoever takes the wrong file would have it shown to everybody who may read the settings.
extension JSONWebKeySet {
    /// The members that only a key's owner has (RFC 7518, §6.2.2, §6.3.2 and §6.4.1; RFC 8037, §2).
    private static let secretMembers = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

    /// The first member of a key set that only a key's owner has, by its place; `nil` if there is
    /// none, as in a set of public keys.
    static func secretMember(of text: String) -> String? {
        guard let elements = elements(of: text) else { return nil }
        for (index, element) in elements.enumerated() {
            guard case .object(let key) = element else { continue }
            if let member = secretMembers.first(where: { key[$0] != nil }) {
                return "keys[\(index)].\(member)"
            }
        }
        return nil
    }

    /// A key set as it is shown: one that was saved before secret members were refused may have
    /// some.
    static func shown(_ text: String) -> JSONValue? {
        guard let json = try? JSONValue(parsing: text), case .object(var object) = json,
            let elements = elements(of: text)
        else { return nil }
        object["keys"] = .array(
            elements.map { element -> JSONValue in
                guard case .object(var key) = element else { return element }
                for member in secretMembers where key[member] != nil { key[member] = "(hidden)" }
                return .object(key)
            })
        return .object(object)
    }

    /// What tells the keys of a set from others.
    static func identities(of text: String) -> [[UInt8]] {
        (elements(of: text) ?? []).compactMap { element in
            guard case .object(let key) = element else { return nil }
            return Key.identity(of: key)
        }
    }

    private static func elements(of text: String) -> [JSONValue]? {
        guard let json = try? JSONValue(parsing: text), case .object(let object) = json,
            case .array(let elements)? = object["keys"]
        else { return nil }
        return elements
    }
}

extension JSONWebKeySet.Key {
    init?(json: JSONValue) {
        guard case .object(let object) = json else { return nil }
        if case .string(let use)? = object["use"], use != "sig" { return nil }
        guard let (algorithm, material) = Self.material(object),
            let identity = Self.identity(of: object)
        else { return nil }
        if case .string(let stated)? = object["alg"], stated != algorithm { return nil }
        if case .string(let id)? = object["kid"] { self.id = id } else { id = nil }
        self.algorithm = algorithm
        self.material = material
        self.identity = identity
    }

    /// What tells a key of a set from others, whatever its name is: its kind and its numbers.
    ///
    /// Whether it is usable is not looked at, as that takes much longer; `nil` is one of a kind
    /// that verifies nothing here.
    static func identity(of object: JSONObject) -> [UInt8]? {
        let kind: String
        let members: [String]
        switch (object["kty"], object["crv"]) {
        case ("RSA", _): (kind, members) = ("RS256", ["n", "e"])
        case ("EC", "P-256"): (kind, members) = ("ES256", ["x", "y"])
        case ("OKP", "Ed25519"): (kind, members) = ("EdDSA", ["x"])
        default: return nil
        }
        let numbers = members.compactMap { bytes($0, object) }
        guard numbers.count == members.count else { return nil }
        return numbers.reduce(Array(kind.utf8)) { $0 + [0] + $1 }
    }

    private static func material(
        _ object: JSONObject
    ) -> (algorithm: String, JSONWebKeySet.Material)? {
        switch (object["kty"], object["crv"]) {
        case ("RSA", _):
            guard let modulus = bytes("n", object), let exponent = bytes("e", object),
                let key = try? _RSA.Signing.PublicKey(n: modulus, e: exponent)
            else { return nil }
            return ("RS256", .rsa(key))
        case ("EC", "P-256"):
            guard let x = bytes("x", object), let y = bytes("y", object), x.count == 32,
                y.count == 32, let key = try? P256.Signing.PublicKey(rawRepresentation: x + y)
            else { return nil }
            return ("ES256", .p256(key))
        case ("OKP", "Ed25519"):
            guard let x = bytes("x", object),
                let key = try? Curve25519.Signing.PublicKey(rawRepresentation: x)
            else { return nil }
            return ("EdDSA", .ed25519(key))
        default: return nil
        }
    }

    private static func bytes(_ name: String, _ object: JSONObject) -> [UInt8]? {
        guard case .string(let text)? = object[name] else { return nil }
        return Base64.decode(text)
    }

    /// Whether the token's signature was made with this key.
    func verifies(_ token: SplitToken) -> Bool {
        switch material {
        case .rsa(let key):
            key.isValidSignature(
                _RSA.Signing.RSASignature(rawRepresentation: token.signature),
                for: SHA256.hash(data: token.signedBytes), padding: .insecurePKCS1v1_5)
        case .p256(let key):
            (try? P256.Signing.ECDSASignature(rawRepresentation: token.signature)).map {
                key.isValidSignature($0, for: SHA256.hash(data: token.signedBytes))
            } ?? false
        case .ed25519(let key):
            key.isValidSignature(token.signature, for: token.signedBytes)
        }
    }
}
