/// A signed text in the compact form of RFC 7515 §7.1, which every JSON Web Token has.
///
/// It is only taken apart here. Whether the parts are base64url, and how strictly, is for whoever
/// believes the signature.
package struct CompactJWS: Sendable, Hashable {
    /// The header, encoded.
    package let header: Substring
    /// The payload, encoded.
    package let payload: Substring
    /// The signature, encoded.
    package let signature: Substring

    /// Takes a text apart; `nil` if it does not have three parts.
    package init?(_ text: String) {
        self.init(text[...])
    }

    /// Takes a part of a text apart.
    package init?(_ text: Substring) {
        // By bytes: whole letters are looked for much longer, and what they join is refused later.
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        header = Substring(parts[0])
        payload = Substring(parts[1])
        signature = Substring(parts[2])
    }

    /// What the signature is over.
    package var signedBytes: [UInt8] {
        Array(header.utf8) + [UInt8(ascii: ".")] + Array(payload.utf8)
    }

    /// The text of a token that `sign` signs.
    package static func text<Failure: Error>(
        header: JSONValue, payload: JSONValue,
        sign: (_ signedBytes: [UInt8]) throws(Failure) -> [UInt8]
    ) throws(Failure) -> String {
        let signed = "\(Base64.encodeToken(header.utf8)).\(Base64.encodeToken(payload.utf8))"
        return "\(signed).\(Base64.encodeToken(try sign(Array(signed.utf8))))"
    }
}
