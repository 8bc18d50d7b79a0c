import Crypto
import CryptoExtras
import RelayModel
import Synchronization

/// The public keys of an identity provider (RFC 7517) that can verify user tokens.
package struct JSONWebKeySet: Sendable {
    /// One usable public key.
    struct Key: Sendable {
        /// The key's `kid`.
        let id: String?
        /// The only algorithm that this key verifies; the key's kind decides it, and not the token.
        let algorithm: String
        let material: Material
        /// The identity of the key: ``identity(of:)``.
        let identity: [UInt8]
    }

    /// The key material that verifies a signature.
    enum Material: Sendable {
        case rsa(_RSA.Signing.PublicKey)
        case p256(P256.Signing.PublicKey)
        case ed25519(Curve25519.Signing.PublicKey)
    }

    /// The usable keys.
    let keys: [Key]

    /// Parses a key set; keys of other kinds and uses are ignored, as RFC 7517 §5 requires.
    ///
    /// - Throws: ``UserTokenRefusal/keySet(_:)`` if it is not a key set, or contains no usable key.
    package init(text: String) throws(UserTokenRefusal) {
        guard let json = try? JSONValue(parsing: text), case .object(let object) = json,
            case .array(let elements)? = object["keys"]
        else { throw .keySet("it must be an object with the array \"keys\"") }
        keys = elements.compactMap(Key.init(json:))
        guard !keys.isEmpty else {
            throw .keySet("it has no signing key for RS256 (2048 to 4096 bits), ES256 or EdDSA")
        }
    }
}

extension JSONWebKeySet {
    /// The key sets that were used last, by the bytes of their texts.
    private static let recent = Mutex<[[UInt8]: JSONWebKeySet]>([:])
    /// The maximum number of them; one with fifty keys takes some hundred kilobytes.
    private static let mostRecent = 32

    /// Returns the key set in `text`, which is parsed only if it was not used lately.
    ///
    /// Every request with a user token needs the keys, and to import fifty takes a millisecond.
    static func inUse(_ text: String) throws(UserTokenRefusal) -> JSONWebKeySet {
        let bytes = Array(text.utf8)
        if let known = recent.withLock({ $0[bytes] }) { return known }
        let keySet = try JSONWebKeySet(text: text)
        recent.withLock { recent in
            if recent.count >= mostRecent { recent.removeAll() }
            recent[bytes] = keySet
        }
        return keySet
    }
}

// Identity providers publish only public keys, but libraries that generate keys write both parts.
// With the wrong file, the private key would be shown to everyone who may read the settings.
extension JSONWebKeySet {
    /// The members that only a private key has (RFC 7518, §6.2.2, §6.3.2 and §6.4.1; RFC 8037, §2).
    private static let secretMembers = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

    /// Returns the place of the first private member in a key set; `nil` if all keys are public.
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

    /// Returns a key set for display.
    ///
    /// Private members are hidden, because a set that was saved before they were refused may have
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

    /// Returns the identities of the keys in a set.
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

    /// Returns the identity of a key: its kind and its numbers, without its name.
    ///
    /// It does not check whether the key is usable, because that takes much longer. It is `nil` for
    /// a kind that verifies nothing here.
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

    /// The maximum size of an RSA modulus in bytes.
    ///
    /// Verifying takes the square of it: 0.25 ms for 8192 bits, and a token without `kid` may have
    /// to be verified by fifty keys.
    private static let longestModulus = 512

    private static func material(
        _ object: JSONObject
    ) -> (algorithm: String, JSONWebKeySet.Material)? {
        switch (object["kty"], object["crv"]) {
        case ("RSA", _):
            guard let modulus = bytes("n", object), let exponent = bytes("e", object),
                modulus.drop(while: { $0 == 0 }).count <= longestModulus,
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

    /// Returns whether the token's signature was made with this key.
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
