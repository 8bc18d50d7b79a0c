public import RelayModel

extension PredicateError {
    /// Returns the error with `found` taken from the source at the error's place, if the error does
    /// not have it yet.
    public func completed(in source: JSONValue) -> PredicateError {
        guard found == nil else { return self }
        var copy = self
        switch (source, path) {
        case (.string(let text), nil): copy.found = spelling(in: text)
        case (let source, let path?): copy.found = Self.found(at: path, in: source)
        default: break
        }
        return copy
    }

    private func spelling(in text: String) -> String {
        let bytes = text.utf8.dropFirst(offset).prefix(length)
        if bytes.isEmpty { return "the end of the text" }
        let shown = String(decoding: bytes.prefix(60), as: UTF8.self)
        return bytes.count > 60 ? "`\(shown)…`" : "`\(shown)`"
    }

    /// Returns the text of the value at a path such as `filterBy[2].comparator`, or "nothing".
    private static func found(at path: String, in source: JSONValue) -> String {
        var value: JSONValue? = source
        for (index, part) in path.split(whereSeparator: { $0 == "." || $0 == "[" }).enumerated() {
            // The path begins with the name of the source itself.
            if index == 0, part == "filterBy" { continue }
            switch value {
            case .object(let object)?: value = object[String(part)]
            case .array(let elements)?:
                guard let place = Int(part.dropLast()), elements.indices.contains(place) else {
                    return "nothing"
                }
                value = elements[place]
            default: return "nothing"
            }
        }
        guard let text = value?.text else { return "nothing" }
        return text.utf8.count > 60 ? "\(text.prefix(60))…" : text
    }
}
