/// An estimate of what it takes to decode a webhook of Directus, from its bytes, which are not
/// parsed.
///
/// One payload may be for a thousand items, each of which gets all of it. So the cost is the number
/// of keys times the size of the rest. The estimate is never below that: it counts the elements of
/// every list that may be one of keys.
struct DirectusWeight {
    /// An open list or object.
    private struct Frame {
        let start: Int
        /// Whether it is a list that may be one of keys.
        let mayBeKeys: Bool
        var elements = 0
    }

    /// What an item costs at the least, for which nothing but its key was sent, in bytes.
    private static let leastPerItem = 256
    /// The members that may have keys; those of a deletion are its payload.
    private static let members = ["key", "keys", "payload"].map { Array($0.utf8) }

    /// About how many bytes the changes have together.
    private(set) var bytes: Int
    private let body: [UInt8]
    private var open: [Frame] = []
    /// The last text, without its quotes.
    private var text = 0..<0
    /// Whether the next value belongs to a member that may have keys.
    private var mayBeKeys = false

    /// Estimates the changes in a body, in time proportional to its length.
    init(of body: [UInt8]) {
        self.body = body
        bytes = body.count
        var index = 0
        while index < body.count { index = take(at: index) }
    }

    /// Takes what begins at `index`; returns the index after it.
    private mutating func take(at index: Int) -> Int {
        switch body[index] {
        case UInt8(ascii: "\""): return takeText(from: index + 1)
        case UInt8(ascii: ":"):
            mayBeKeys = namesKeys
            return index + 1
        case UInt8(ascii: "["), UInt8(ascii: "{"):
            let isList = body[index] == UInt8(ascii: "[")
            open.append(Frame(start: index, mayBeKeys: isList && mayBeKeys))
        case UInt8(ascii: "]"), UInt8(ascii: "}"):
            if let frame = open.popLast(), frame.mayBeKeys {
                add(frame.elements, in: index - frame.start)
            }
        case UInt8(ascii: ","): break
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            countElement()
            mayBeKeys = false
            return endOfNumber(from: index + 1)
        default: return index + 1
        }
        mayBeKeys = false
        return index + 1
    }

    private mutating func takeText(from start: Int) -> Int {
        var end = start
        while end < body.count, body[end] != UInt8(ascii: "\"") {
            end += body[end] == UInt8(ascii: "\\") ? 2 : 1
        }
        text = start..<min(end, body.count)
        countElement()
        // A template in quotes sends the list as a text. It has a key in two bytes at the most.
        if mayBeKeys, let first = body[text].first,
            first == UInt8(ascii: "[") || first == UInt8(ascii: "\\")
        {
            add(text.count / 2, in: text.count)
        }
        mayBeKeys = false
        return end + 1
    }

    private func endOfNumber(from start: Int) -> Int {
        var end = start
        while end < body.count, Self.isOfNumber(body[end]) { end += 1 }
        return end
    }

    private static func isOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
            UInt8(ascii: "+"), UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    /// Whether the last text, a member's name, may be one of those with keys; one with an escape
    /// may be any.
    private var namesKeys: Bool {
        let name = body[text]
        return name.contains(UInt8(ascii: "\\")) || Self.members.contains { name.elementsEqual($0) }
    }

    private mutating func countElement() {
        guard let last = open.indices.last, open[last].mayBeKeys else { return }
        open[last].elements += 1
    }

    /// Adds the changes of `count` keys in a list of `length` bytes.
    private mutating func add(_ count: Int, in length: Int) {
        guard count > 1 else { return }
        bytes += count * max(Self.leastPerItem, body.count - length)
    }
}
