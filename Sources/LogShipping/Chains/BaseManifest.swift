import FoundationEssentials

/// The parts of a copy with their checksums: the contents of the object whose name says that the
/// copy is whole.
struct BaseManifest: Sendable, Hashable {
    /// A part of the file.
    struct Part: Sendable, Hashable {
        let bytes: Int
        /// The SHA-256 of the part, in hexadecimal digits.
        let hash: String
    }

    static let title = "belfry-base 1"
    /// The maximum size of a manifest: a file of 16 TiB has a million parts, with one line each.
    static let maximumBytes = 128 << 20

    /// The number of bytes of a part, except the last one.
    static let maximumPart = 16 << 20

    let store: String
    var parts: [Part] = []

    var text: String {
        let lines = [Self.title, "store \(store)"] + parts.map { "part \($0.bytes) \($0.hash)" }
        let text = lines.joined(separator: "\n") + "\n"
        return text + "sum \(RequestSignature.hash(text))\n"
    }

    init(store: String) {
        self.store = store
    }

    /// Parses a manifest; returns `nil` if the text is not one or is damaged.
    init?(_ text: String) {
        guard let end = text.ranges(of: "\nsum ").last else { return nil }
        let body = text[..<text.index(after: end.lowerBound)]
        guard text[end.upperBound...] == "\(RequestSignature.hash(String(body)))\n" else {
            return nil
        }
        let lines = body.split(separator: "\n").map { $0.split(separator: " ") }
        guard lines.count >= 2, body.hasPrefix("\(Self.title)\n"), lines[1].count == 2,
            lines[1][0] == "store"
        else { return nil }
        store = String(lines[1][1])
        for line in lines.dropFirst(2) {
            guard line.count == 3, line[0] == "part", let bytes = Int(line[1]), bytes > 0,
                bytes <= Self.maximumPart
            else { return nil }
            parts.append(Part(bytes: bytes, hash: String(line[2])))
        }
    }
}
