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
        equal(self.verifier(of: secret), verifier)
    }

    /// Compares digests in a time that does not depend on where they differ.
    static func equal(_ left: String, _ right: String) -> Bool {
        let (left, right) = (Array(left.utf8), Array(right.utf8))
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for (a, b) in zip(left, right) { difference |= a ^ b }
        return difference == 0
    }
}
