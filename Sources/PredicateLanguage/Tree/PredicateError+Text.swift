extension PredicateError {
    /// Returns the error as text for people: the line of the source, a caret under the place, the
    /// reason and the hint.
    ///
    /// `source` is the text that was parsed. It is not shown if the error has a
    /// ``PredicateError/path`` instead.
    public func rendered(in source: String) -> String {
        var lines: [String] = []
        if path == nil, !source.isEmpty {
            let excerpt = Excerpt(of: source, at: offset, length: length)
            lines.append(excerpt.text)
            lines.append(
                String(repeating: " ", count: excerpt.column) + "^"
                    + String(repeating: "~", count: max(excerpt.width - 1, 0)))
        }
        lines.append("\(stage.rawValue) error: \(path.map { "\($0): " } ?? "")\(reason)")
        if let found { lines.append("  found: \(found)") }
        if let expected { lines.append("  expected: \(expected)") }
        if let hint { lines.append("  hint: \(hint)") }
        return lines.joined(separator: "\n")
    }

    /// The part of a text around the place of an error.
    private struct Excerpt {
        var text: String
        /// The number of characters before the place.
        var column: Int
        /// The number of characters at the place.
        var width: Int

        /// The maximum number of characters to show of the place, and on either side of it.
        static let margin = 60

        init(of source: String, at offset: Int, length: Int) {
            let bytes = Array(source.utf8)
            let start = min(max(offset, 0), bytes.count)
            let end = min(start + max(length, 0), bytes.count)
            func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }
            let before = bytes[..<start].split(
                omittingEmptySubsequences: false, whereSeparator: isLineEnd)
            let after = bytes[end...].split(
                omittingEmptySubsequences: false, whereSeparator: isLineEnd)
            let place = bytes[start..<end].prefix { !isLineEnd($0) }
            let head = String(decoding: before.last ?? [], as: UTF8.self).suffix(Self.margin)
            let middle = String(decoding: place, as: UTF8.self).prefix(Self.margin)
            let tail = String(decoding: after.first ?? [], as: UTF8.self).prefix(Self.margin)
            text = (head + middle + tail).map { $0 == "\t" ? " " : String($0) }.joined()
            column = head.count
            width = max(middle.count, 1)
        }
    }
}
