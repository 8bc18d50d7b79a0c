/// Two adjacent parts of a signature between which bytes could move.
///
/// One part may grow by what the other loses, while the signed bytes stay the same.
struct SignatureSeam: Sendable, Hashable {
    /// The index of the first part in the recipe.
    let first: Int
    /// The index of the second part in the recipe.
    let second: Int
    /// The first part, in words.
    let before: String
    /// The second part, in words.
    let after: String

    /// What is wrong, and what is allowed.
    var reason: String {
        "\(after) follows \(before) (parts[\(first)]) without a line break between, so bytes "
            + "could move from one to the other under the same signature; put a literal with a "
            + #"line break between them, such as {"literal": "\n"}"#
    }
}

extension SignatureRecipe {
    /// Returns the first two adjacent parts without a safe separator, at least one of which is a
    /// header whose name begins with `prefix`; `nil` if there are none.
    ///
    /// Only a line break is a safe separator, because no header's value can contain one. The body
    /// can, but a line break on each side separates it as well, because its neighbours are headers.
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
            // The secret is the same for every request. Bytes may move across it but cannot become
            // part of it.
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
