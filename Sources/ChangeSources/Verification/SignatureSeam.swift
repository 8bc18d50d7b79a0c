/// Two parts of what a signature covers, of which one may grow by what the other loses: the bytes
/// that are signed stay the same.
struct SignatureSeam: Sendable, Hashable {
    /// Where the part before stands in the recipe.
    let first: Int
    /// Where the part after stands.
    let second: Int
    /// The part before, in words.
    let before: String
    /// The part after, in words.
    let after: String

    /// What is wrong with it, and what is allowed.
    var reason: String {
        "\(after) stands beside \(before) (parts[\(first)]) with no line break between, "
            + "so that bytes could move from one to the other under the same signature; allowed is "
            + #"a literal with a line break between, as {"literal": "\n"}"#
    }
}

extension SignatureRecipe {
    /// The first two neighbours that nothing holds apart, of which one at least is a header whose
    /// name begins with `prefix`; `nil` if there are none.
    ///
    /// No header's value can have a line break, and no other text is out of reach of every value.
    /// The body may have some: it is held apart from both sides, since it stands among headers.
    func seam(ofHeaders prefix: String) -> SignatureSeam? {
        var before: (index: Int, name: String, counts: Bool)?
        var isHeldApart = false
        for (index, part) in parts.enumerated() {
            let name: String
            var counts = false
            switch part {
            case .literal(let text):
                isHeldApart = isHeldApart || text.utf8.contains { $0 == 0x0A || $0 == 0x0D }
                continue
            // The same for every request: bytes may move across it, and cannot become part of it.
            case .secret: continue
            case .header(let header):
                name = "the header \(header)"
                counts = header.lowercased().hasPrefix(prefix)
            case .url: name = "the URL"
            case .body: name = "the body"
            }
            if let before, !isHeldApart, counts || before.counts {
                return SignatureSeam(
                    first: before.index, second: index, before: before.name, after: name)
            }
            before = (index, name, counts)
            isHeldApart = false
        }
        return nil
    }
}
