import FoundationEssentials
import Storage

/// The configured keys of secrets, as texts.
struct SecretKeyTexts: Sendable {
    /// The key itself.
    var key: String?
    /// The file that contains the key.
    var keyFile: String?
    /// The file that contains the previous key.
    var previousKeyFile: String?
}

/// Reads the keys of secrets from the configuration and the files that it names.
struct SecretKeyReading {
    private(set) var vault = SecretVault()
    /// The problems, one sentence each, without any part of a key.
    private(set) var problems: [String] = []

    init(_ texts: SecretKeyTexts) {
        if texts.key != nil, texts.keyFile != nil {
            problems.append("secrets.key and secrets.keyFile: set only one of them")
        }
        vault.current =
            texts.key.flatMap { key($0, of: "secrets.key") }
            ?? texts.keyFile.flatMap { key(inFile: $0, of: "secrets.keyFile") }
        let previous = texts.previousKeyFile.flatMap {
            key(inFile: $0, of: "secrets.previousKeyFile")
        }
        if let previous {
            vault.previous = [previous]
            if vault.current == nil {
                problems.append(
                    "secrets.previousKeyFile: no key replaces the previous one; set secrets.keyFile"
                )
            }
        }
    }

    private mutating func key(_ text: String, of name: String) -> SecretKey? {
        guard let key = SecretKey(text: text) else {
            problems.append("\(name): the key must be \(SecretKey.rule)")
            return nil
        }
        return key
    }

    private mutating func key(inFile path: String, of name: String) -> SecretKey? {
        do {
            let bytes = try WholeFile.bytes(at: path, atMost: 1024)
            return key(String(decoding: bytes, as: UTF8.self), of: name)
        } catch {
            problems.append("\(name): the file \(path) cannot be read: \(error.systemReason)")
            return nil
        }
    }
}
