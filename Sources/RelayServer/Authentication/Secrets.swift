import Crypto
import RelayModel

/// What is kept of secrets, and how they are compared.
package enum Secrets {
    /// SHA-256 of a secret in hexadecimal digits: what the registry keeps.
    package static func verifier(of secret: String) -> String {
        Hexadecimal.encode(SHA256.hash(data: Array(secret.utf8)))
    }

    /// Whether `secret` is the one that `verifier` was made of; the time tells nothing.
    package static func matches(_ secret: String, verifier: String) -> Bool {
        ConstantTime.equal(self.verifier(of: secret).utf8, verifier.utf8)
    }
}
