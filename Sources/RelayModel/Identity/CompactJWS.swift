/// A signed text in the compact form of RFC 7515 §7.1, which every JSON Web Token has.
///
/// This type only splits the text. The code that verifies the signature must check that the parts
/// are base64url, and how strictly.
package struct CompactJWS: Sendable, Hashable {
    /// The encoded header.
    package let header: Substring
    /// The encoded payload.
    package let payload: Substring
    /// The encoded signature.
    package let signature: Substring

    /// Splits a text; returns `nil` if it does not have exactly three parts.
    package init?(_ text: String) {
        self.init(text[...])
    }

    /// Splits a part of a text; returns `nil` if it does not have exactly three parts.
    package init?(_ text: Substring) {
        // Splitting by bytes is much faster than by characters. A combining mark after a dot is
        // refused later, because it is not base64url.
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        header = Substring(parts[0])
        payload = Substring(parts[1])
        signature = Substring(parts[2])
    }

    /// The bytes that the signature covers.
    package var signedBytes: [UInt8] {
        Array(header.utf8) + [UInt8(ascii: ".")] + Array(payload.utf8)
    }

    /// Returns the text of a token that `sign` signs.
    package static func text<Failure: Error>(
        header: JSONValue, payload: JSONValue,
        sign: (_ signedBytes: [UInt8]) throws(Failure) -> [UInt8]
    ) throws(Failure) -> String {
        let signed = "\(Base64.encodeToken(header.utf8)).\(Base64.encodeToken(payload.utf8))"
        return "\(signed).\(Base64.encodeToken(try sign(Array(signed.utf8))))"
    }
}
