import PredicateLanguage

/// A gram: three bytes of a text as a number.
enum TextGram {
    @inline(__always)
    static func gram(_ start: UnsafePointer<UInt8>) -> UInt64 {
        UInt64(start[0]) | UInt64(start[1]) << 8 | UInt64(start[2]) << 16
    }
}

/// The words of texts as token search defines them.
enum TextWords {
    /// Returns the hash under which a filter knows a word.
    @inline(__always)
    static func hash(_ bytes: UnsafePointer<UInt8>, _ slot: FieldSlot) -> UInt64 {
        KeyHash.wide(bytes + Int(slot.offset), Int(slot.length), seed: 0x70C)
    }

    /// Returns the lower-case form of an upper-case ASCII letter, and any other byte unchanged.
    @inline(__always)
    static func lowercase(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    /// Returns whether an ASCII character is part of words.
    @inline(__always)
    static func isLetter(_ byte: UInt8) -> Bool {
        byte | 0x20 &- 0x61 < 26 ? true : byte &- 0x30 < 10
    }
}

extension ValueEncoder {
    /// Calls `body` with each word of a text, as a slot whose bytes are removed afterwards unless
    /// `body` returns `true`.
    ///
    /// The bytes of the text must be in ``bytes``.
    mutating func forEachWord(
        in slot: FieldSlot, _ body: (inout ValueEncoder, FieldSlot) -> Bool
    ) {
        let end = Int(slot.offset + slot.length)
        var place = Int(slot.offset)
        if !isASCII(slot) {
            let text = String(
                decoding: UnsafeBufferPointer(
                    start: bytes.base + place, count: Int(slot.length)), as: UTF8.self)
            forEachWord(ofText: text, body)
            return
        }
        while place < end {
            while place < end, !TextWords.isLetter(bytes.base[place]) { place += 1 }
            let mark = bytes.count
            bytes.reserve(end - place)
            while place < end, TextWords.isLetter(bytes.base[place]) {
                bytes.append(TextWords.lowercase(bytes.base[place]))
                place += 1
            }
            if bytes.count == mark { return }
            let word = string(from: mark)
            if !body(&self, word) { bytes.count = mark }
        }
    }

    /// Calls `body` with each word of a text that is not encoded.
    mutating func forEachWord(
        ofText text: String, _ body: (inout ValueEncoder, FieldSlot) -> Bool
    ) {
        guard admits(slow: text.utf8.count * 2) else { return }
        for word in IndexedText.words(of: text) {
            let mark = bytes.count
            let slot = string(word)
            if !body(&self, slot) { bytes.count = mark }
        }
    }

    private func isASCII(_ slot: FieldSlot) -> Bool {
        var union: UInt8 = 0
        let start = bytes.base + Int(slot.offset)
        for index in 0..<Int(slot.length) { union |= start[index] }
        return union < 0x80
    }
}
