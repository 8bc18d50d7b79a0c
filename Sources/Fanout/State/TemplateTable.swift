import RelayModel

/// A table of values that many records share, each stored once: what the subscriptions or devices
/// of one application have in common.
///
/// Up to a few thousand different values are found again by value. Further ones are stored
/// separately, as text that is decoded when needed. So neither memory nor the time to load grows
/// with how different the values are.
struct TemplateTable<Value: Hashable & Sendable>: Sendable {
    private struct Entry {
        var text: String
        var uses: Int32
        var isShared: Bool
        /// Whether the text is all ASCII, so that each letter has one spelling.
        let isPlain: Bool

        init(text: String, uses: Int32, isShared: Bool) {
            self.text = text
            self.uses = uses
            self.isShared = isShared
            isPlain = text.utf8.isASCII
        }
    }

    private var entries: [Entry] = []
    private var free: [UInt32] = []
    private var numbers: [Value: UInt32] = [:]
    private var known: [UInt32: Value] = [:]
    /// The shared value that was entered last.
    ///
    /// The same value often comes many times in a row, and comparing is much faster than hashing.
    private var last: (value: Value, number: UInt32)?
    private let write: @Sendable (Value) -> String
    private let read: @Sendable (String) throws -> Value

    /// The maximum number of values that are found again.
    private static var mostShared: Int { 4096 }
    /// The maximum number of decoded values that are cached.
    private static var mostKnown: Int { 8192 }

    /// Creates an empty table of values with these conversions to and from text.
    init(
        write: @escaping @Sendable (Value) -> String,
        read: @escaping @Sendable (String) throws -> Value
    ) {
        self.write = write
        self.read = read
    }

    /// Returns the number of `value`, and adds one use.
    mutating func number(of value: Value) -> UInt32 {
        if let last, last.value == value, isSpelled(value, last.number) {
            entries[Int(last.number)].uses += 1
            return last.number
        }
        let alike = numbers[value]
        if let alike, isSpelled(value, alike) {
            entries[Int(alike)].uses += 1
            last = (value, alike)
            return alike
        }
        // Of several spellings, only the newest can be found.
        if let alike { entries[Int(alike)].isShared = false }
        let isShared = alike != nil || numbers.count < Self.mostShared
        let entry = Entry(text: write(value), uses: 1, isShared: isShared)
        let number = free.popLast() ?? UInt32(entries.count)
        if Int(number) == entries.count {
            entries.append(entry)
        } else {
            entries[Int(number)] = entry
        }
        if isShared { numbers[value] = number }
        know(value, number)
        return number
    }

    /// Returns whether a value that equals the one with this number is written in the same bytes.
    ///
    /// Texts are equal even if a letter is spelled in two ways, and no push may have another push's
    /// spelling.
    private func isSpelled(_ value: Value, _ number: UInt32) -> Bool {
        let entry = entries[Int(number)]
        return entry.isPlain || entry.text.utf8.elementsEqual(write(value).utf8)
    }

    /// Returns the value with this number, or `nil` if it cannot be read.
    mutating func value(_ number: UInt32) -> Value? {
        if let value = known[number] { return value }
        guard Int(number) < entries.count,
            let value = try? read(entries[Int(number)].text)
        else { return nil }
        know(value, number)
        return value
    }

    private mutating func know(_ value: Value, _ number: UInt32) {
        if known.count >= Self.mostKnown { known.removeAll(keepingCapacity: true) }
        known[number] = value
    }

    /// Removes one use of the value with this number.
    mutating func release(_ number: UInt32) {
        let index = Int(number)
        guard index < entries.count, entries[index].uses > 0 else { return }
        entries[index].uses -= 1
        guard entries[index].uses == 0 else { return }
        if entries[index].isShared, let value = value(number) { numbers[value] = nil }
        if last?.number == number { last = nil }
        known[number] = nil
        entries[index].text = ""
        free.append(number)
    }

    // MARK: Snapshots

    /// Appends the table to an image.
    func write(to image: inout ImageWriter) {
        image.append(UInt64(entries.count))
        for entry in entries {
            image.append(entry.uses)
            image.append(entry.text)
        }
    }

    /// Fills an empty table from an image.
    ///
    /// - Throws: `ImageDamage`, or what reading a value throws.
    mutating func load(_ image: inout ImageReader) throws {
        let count = try image.count(0...Int(Int32.max))
        entries.reserveCapacity(min(count, 1 << 20))
        for number in 0..<count {
            let uses = try image.word(Int32.self)
            var entry = Entry(text: try image.text(), uses: uses, isShared: false)
            if uses <= 0 {
                free.append(UInt32(number))
            } else if numbers.count < Self.mostShared {
                // If a value occurs twice, the first one is found. An entry must only be found as
                // long as it exists.
                let value = try read(entry.text)
                entry.isShared = numbers[value] == nil
                if entry.isShared { numbers[value] = UInt32(number) }
            }
            entries.append(entry)
        }
    }

    /// Returns whether `number` is that of a value in use.
    func isInUse(_ number: UInt32) -> Bool {
        Int(number) < entries.count && entries[Int(number)].uses > 0
    }
}
