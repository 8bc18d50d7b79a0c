import CSQLite

/// One generation of the write-ahead log, from one restart to the next.
///
/// SQLite restarts the log only when all of it is in the file, and gives it another salt.
struct LogGeneration: Sendable, Hashable {
    static let headerBytes = 32
    static let frameHeaderBytes = 24

    /// The eight bytes that every frame of the generation repeats.
    let salt: [UInt8]
    let pageBytes: Int
    /// The byte order in which its checksums are computed.
    let isBigEndian: Bool
    /// The checksum of its header, with which the checksum of the first frame begins.
    let seed: [UInt8]

    init(salt: [UInt8], pageBytes: Int, isBigEndian: Bool, seed: [UInt8]) {
        self.salt = salt
        self.pageBytes = pageBytes
        self.isBigEndian = isBigEndian
        self.seed = seed
    }

    /// Decodes the header of a log (https://www.sqlite.org/fileformat2.html#walformat); `nil` if it
    /// is not one.
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

    /// Returns whether SQLite allows pages of this size.
    static func isPage(_ bytes: Int) -> Bool {
        (512...65_536).contains(bytes) && bytes & (bytes - 1) == 0
    }

    /// The size of a frame with its page, in bytes.
    var frameBytes: Int { Self.frameHeaderBytes + pageBytes }

    /// Returns the offset in the log file at which frame `number`, counted from 1, begins.
    func offset(of number: Int) -> Int { Self.headerBytes + (number - 1) * frameBytes }

    /// Counts the leading `frames` that continue the log after a frame with the checksum `sum`.
    ///
    /// `sum` becomes the checksum of the last frame that belongs to the log.
    func follow(_ frames: [UInt8], from sum: inout [UInt8]) -> Int {
        var words = [Self.word(sum[0..<4]), Self.word(sum[4..<8])]
        let count = belfry_wal_follow(
            frames, Int32(frames.count / frameBytes), Int32(pageBytes), isBigEndian ? 1 : 0, salt,
            &words)
        sum = words.flatMap { Self.bytes($0) }
        return Int(count)
    }

    /// Returns the database's size in pages if the frame at `start` ends a commit; otherwise 0.
    func pagesAfterCommit(_ frames: [UInt8], at start: Int) -> Int {
        Int(Self.word(frames[(start + 4)..<(start + 8)]))
    }

    /// Decodes a big-endian number of four bytes.
    static func word(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func bytes(_ word: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) }
    }
}
