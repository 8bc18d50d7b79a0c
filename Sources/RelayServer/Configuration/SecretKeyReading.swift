import Foundation
import Storage

/// Reads the keys of secrets from the configuration and the files that it names.
struct SecretKeyReading {
    private(set) var vault = SecretVault()
    /// What is wrong, a sentence each; nothing of a key is in them.
    private(set) var problems: [String] = []

    init(_ values: ConfigurationValues) {
        let text = values.text("secrets.key")
        if text != nil, values.text("secrets.keyFile") != nil {
            problems.append("secrets.key and secrets.keyFile: one of the two is enough")
        }
        vault.current =
            text.flatMap { key($0, of: "secrets.key") } ?? key(inFileOf: "secrets.keyFile", values)
        if let previous = key(inFileOf: "secrets.previousKeyFile", values) {
            vault.previous = [previous]
            if vault.current == nil {
                problems.append(
                    "secrets.previousKeyFile: there is no key that replaces it; set secrets.keyFile"
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

    private mutating func key(
        inFileOf name: String, _ values: ConfigurationValues
    ) -> SecretKey? {
        guard let path = values.text(name) else { return nil }
        guard let data = FileManager.default.contents(atPath: path), data.count <= 1024 else {
            problems.append("\(name): the file \(path) cannot be read")
            return nil
        }
        return key(String(decoding: data, as: UTF8.self), of: name)
    }
}
