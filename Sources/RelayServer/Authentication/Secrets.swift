import Crypto
import RelayModel

/// Computes and compares the verifiers of secrets.
package enum Secrets {
    /// Returns the SHA-256 digest of a secret in hexadecimal digits, which the registry stores.
    package static func verifier(of secret: String) -> String {
        Hexadecimal.encode(SHA256.hash(data: Array(secret.utf8)))
    }

    /// Returns whether `verifier` was made from `secret`, in constant time.
    package static func matches(_ secret: String, verifier: String) -> Bool {
        ConstantTime.equal(self.verifier(of: secret).utf8, verifier.utf8)
    }
}
