import RelayModel

/// The header of a segment, before its frames: lines of words, then an empty line.
///
/// ```
/// belfry-log 1
/// store 8f14e45f-ceea-467f-a9c5-0d3bd5a0c1d2
/// chain 20261125T201501Z-1a2b3c4d
/// sequence 17 since 12
/// log 4096 little a1b2c3d4e5f60718 0011223344556677
/// frames 1 40 0011223344556677 8899aabbccddeeff
/// boot 6ff5e6d0-…
/// mark 3 120 118 1764101701123456789
/// ```
/// A segment is a run of frames of one generation of the write-ahead log. The segments of a chain
/// follow one another without a gap.
package struct SegmentHeader: Sendable, Hashable {
    static let title = "belfry-log 1"
    /// The maximum size of a header, in bytes.
    ///
    /// A mark has at most 80 bytes, and a segment has at most as many frames as 16 MiB have pages
    /// of 512 bytes.
    static let maximumBytes = 4 << 20

    /// The identity of the store.
    package let store: String
    package let chain: String
    /// The number of the segment in the chain, from 1.
    package let sequence: UInt64
    /// The number of the first segment of the same generation.
    ///
    /// A copy of the file that begins now needs the segments from that one on.
    package let since: UInt64
    let generation: LogGeneration
    /// The number of its first frame in the generation, from 1.
    let first: Int
    let count: Int
    /// The checksum of the frame before the first.
    let before: [UInt8]
    /// The checksum of its last frame.
    let after: [UInt8]
    /// The ID of the machine's boot in which it was written.
    let boot: String
    /// The marks of the commits that end in the segment.
    package let marks: [LogMark]

    /// The number of its last frame in the generation.
    var last: Int { first + count - 1 }
}

extension SegmentHeader {
    /// The header's text, with the empty line at its end.
    var text: String {
        let salt = Hexadecimal.encode(generation.salt)
        let seed = Hexadecimal.encode(generation.seed)
        let (before, after) = (Hexadecimal.encode(before), Hexadecimal.encode(after))
        let lines =
            [
                Self.title, "store \(store)", "chain \(chain)",
                "sequence \(sequence) since \(since)",
                "log \(generation.pageBytes) \(generation.isBigEndian ? "big" : "little") "
                    + "\(salt) \(seed)",
                "frames \(first) \(count) \(before) \(after)",
                "boot \(boot)",
            ] + marks.map { "mark \($0.words)" }
        return lines.joined(separator: "\n") + "\n\n"
    }

    /// Decodes the header at the beginning of `bytes`, and returns it with the offset of the
    /// frames; `nil` if there is none.
    static func read(_ bytes: some Collection<UInt8>) -> (header: SegmentHeader, end: Int)? {
        var lines: [Substring] = []
        var line: [UInt8] = []
        var end = 0
        for byte in bytes.prefix(maximumBytes) {
            end += 1
            guard byte == 0x0A else {
                line.append(byte)
                continue
            }
            if line.isEmpty { return SegmentHeader(lines).map { ($0, end) } }
            lines.append(Substring(decoding: line, as: UTF8.self))
            line.removeAll(keepingCapacity: true)
        }
        return nil
    }

    private init?(_ lines: [Substring]) {
        guard lines.count >= 7, lines[0] == Self.title[...] else { return nil }
        let words = lines.map { $0.split(separator: " ") }
        func are(_ index: Int, _ name: String, _ count: Int) -> Bool {
            words[index].count == count && words[index][0] == name[...]
        }
        guard are(1, "store", 2), are(2, "chain", 2), are(3, "sequence", 4), are(4, "log", 5),
            are(5, "frames", 5), are(6, "boot", 2), let sequence = UInt64(words[3][1]),
            let since = UInt64(words[3][3]), let page = Int(words[4][1]),
            LogGeneration.isPage(page), let salt = Self.eight(words[4][3]),
            let seed = Self.eight(words[4][4]), let first = Int(words[5][1]),
            let count = Int(words[5][2]), let before = Self.eight(words[5][3]),
            let after = Self.eight(words[5][4]), first > 0, count > 0, first < Int(Int32.max),
            count < Int(Int32.max), since <= sequence
        else { return nil }
        var marks: [LogMark] = []
        for line in lines.dropFirst(7) {
            guard line.hasPrefix("mark "), let mark = LogMark(words: line.dropFirst(5)),
                mark.frame >= first, mark.frame < first + count,
                marks.last.map({ $0.frame < mark.frame }) ?? true
            else { return nil }
            marks.append(mark)
        }
        self.init(
            store: String(words[1][1]), chain: String(words[2][1]), sequence: sequence,
            since: since,
            generation: LogGeneration(
                salt: salt, pageBytes: page, isBigEndian: words[4][2] == "big", seed: seed),
            first: first, count: count, before: before, after: after, boot: String(words[6][1]),
            marks: marks)
    }

    private static func eight(_ text: Substring) -> [UInt8]? {
        text.utf8.count == 16 ? Hexadecimal.decode(text) : nil
    }
}
