import CSQLite

/// One life of the write-ahead log, from one start anew to the next.
///
/// SQLite starts the log anew only when all of it is in the file, and gives it another salt.
struct LogGeneration: Sendable, Hashable {
    static let headerBytes = 32
    static let frameHeaderBytes = 24

    /// The eight bytes that every frame of it repeats.
    let salt: [UInt8]
    let pageBytes: Int
    /// The order of bytes in which its checksums are computed.
    let isBigEndian: Bool
    /// The checksum of its header, from which that of the first frame goes on.
    let seed: [UInt8]

    init(salt: [UInt8], pageBytes: Int, isBigEndian: Bool, seed: [UInt8]) {
        self.salt = salt
        self.pageBytes = pageBytes
        self.isBigEndian = isBigEndian
        self.seed = seed
    }

    /// Reads the header of a log (https://www.sqlite.org/fileformat2.html#walformat); `nil` if it
    /// is none.
    init?(header: [UInt8]) {
        guard header.count == Self.headerBytes, header[0] == 0x37, header[1] == 0x7F,
            header[2] == 0x06, header[3] & 0xFE == 0x82
        else { return nil }
        let page = Int(Self.word(header[8..<12]))
        guard Self.isPage(page) else { return nil }
        self.init(
            salt: Array(header[16..<24]), pageBytes: page, isBigEndian: header[3] & 1 == 1,
            seed: Array(header[24..<32]))
    }

    /// Whether pages may have so many bytes.
    static func isPage(_ bytes: Int) -> Bool {
        (512...65_536).contains(bytes) && bytes & (bytes - 1) == 0
    }

    /// The bytes of a frame with its page.
    var frameBytes: Int { Self.frameHeaderBytes + pageBytes }

    /// Where frame `number`, from 1, begins in the file of the log.
    func offset(of number: Int) -> Int { Self.headerBytes + (number - 1) * frameBytes }

    /// How many of the `frames`, which lie one behind the other, belong to the log whose frame
    /// before them has the checksum `sum`; it becomes that of the last one that does.
    func follow(_ frames: [UInt8], from sum: inout [UInt8]) -> Int {
        var words = [Self.word(sum[0..<4]), Self.word(sum[4..<8])]
        let count = belfry_wal_follow(
            frames, Int32(frames.count / frameBytes), Int32(pageBytes), isBigEndian ? 1 : 0, salt,
            &words)
        sum = words.flatMap { Self.bytes($0) }
        return Int(count)
    }

    /// The pages of the file after the commit that the frame at `start` ends; 0 if it ends none.
    func pagesAfterCommit(_ frames: [UInt8], at start: Int) -> Int {
        Int(Self.word(frames[(start + 4)..<(start + 8)]))
    }

    /// A number of four bytes, the highest first.
    static func word(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func bytes(_ word: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) }
    }
}
