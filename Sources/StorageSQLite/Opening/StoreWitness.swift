import CSQLite
import FoundationEssentials
import Glibc
import RelayModel
import Storage
import StorageSQL
import Synchronization

/// What is known beside the file of how far the store was acknowledged.
struct WitnessRecord: Sendable, Hashable {
    /// Which store it is.
    var identity: UUIDBytes
    /// How many commits were acknowledged.
    var commits: Int64
    /// The last position of the log.
    var head: LogPosition
    /// The first word of the salt of the write-ahead log that held the last commit; 0 if that was
    /// folded into the file.
    var salt: UInt32
    /// Whether the pages of the file have checksums.
    var isSealed: Bool
}

/// The file `<file>-witness`: says which store it is and how far it was acknowledged, so that a
/// file that was lost, cut or exchanged is not taken for the whole.
///
/// It is written after every commit and before anybody is answered, and not synced with each: so it
/// never knows more than is on the disk. Whatever happens to the process, it knows the last commit;
/// after a power cut it may know one of seconds ago.
final class StoreWitness: Sendable {
    static let ending = "-witness"
    private static let slotBytes = 80
    /// The slots lie in pages of their own: a write that is torn spoils one of them.
    private static let slotDistance = 4096
    private static let magic = Array("BelfryW1".utf8)
    /// A restart of the write-ahead log adds one to its salt.
    ///
    /// Two kept records that lie further apart than this belong to different logs.
    private static let restarts: UInt32 = 4096

    private let descriptor: Int32
    private let path: String
    private let sequence: Mutex<UInt64>
    /// The write-ahead log, once there is one.
    private let log = Mutex<Int32?>(nil)

    /// Opens the witness of the store at `path`, which is made if it is not there.
    init(of path: String) throws(StorageError) {
        let name = path + Self.ending
        self.path = path
        descriptor = Glibc.open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw .failed(name, "it cannot be opened", errno)
        }
        do throws(StorageError) {
            let newest = try Self.slots(in: descriptor, of: name).map(\.sequence).max()
            sequence = Mutex(newest ?? 0)
        } catch {
            close(descriptor)
            throw error
        }
    }

    deinit {
        close(descriptor)
        if let log = log.withLock({ $0 }) { close(log) }
    }

    /// The first word of the salt of the write-ahead log; 0 if there is none.
    ///
    /// While a connection is open, the log is one file.
    func salt() -> UInt32 {
        log.withLock { log in
            if log == nil {
                let opened = Glibc.open(path + "-wal", O_RDONLY | O_CLOEXEC)
                if opened >= 0 { log = opened }
            }
            return log.flatMap(Self.salt) ?? 0
        }
    }

    /// Notes a commit.
    ///
    /// - Throws: `errno` as a ``WitnessFailure`` if it cannot be written.
    func note(_ record: WitnessRecord) throws(WitnessFailure) {
        let number = sequence.withLock { sequence in
            sequence += 1
            return sequence
        }
        let bytes = Self.encode(record, number)
        let place = Int(number % 2) * Self.slotDistance
        let count = pwrite(descriptor, bytes, bytes.count, off_t(place))
        guard count == bytes.count else { throw WitnessFailure(code: count < 0 ? errno : ENOSPC) }
    }

    /// Notes that what is `known` is in the file, and that any log may follow.
    func noteFolding(after known: WitnessRecord) throws(StorageError) {
        var record = known
        record.salt = 0
        try noteAtStart(record)
    }

    /// Notes how far the store is before anything is acknowledged, durably.
    ///
    /// - Throws: ``StorageError/noRoom(_:)`` if there is none, so that the start waits.
    func noteAtStart(_ record: WitnessRecord) throws(StorageError) {
        do {
            try note(record)
            try sync()
        } catch {
            throw .failed(path + Self.ending, "it cannot be written", error.code)
        }
    }

    /// Has what was noted written to the disk.
    func sync() throws(WitnessFailure) {
        guard fdatasync(descriptor) == 0 else { throw WitnessFailure(code: errno) }
    }

    /// What the witness of the store at `path` knows; `nil` if there is none, or one that was made
    /// and never written, because the disk was full or the process ended: the file then does not
    /// say yet that it has one.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if it cannot be read.
    static func record(of path: String) throws(StorageError) -> WitnessRecord? {
        let name = path + ending
        let descriptor = Glibc.open(name, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw .failed(name, "it cannot be opened", errno)
        }
        defer { close(descriptor) }
        if let newest = try slots(in: descriptor, of: name).max(by: { $0.sequence < $1.sequence }) {
            return newest.record
        }
        guard isWritten(descriptor) else { return nil }
        throw .damaged(
            path: name,
            reason: "neither of its two records can be read; if the store is known to be whole, "
                + "belfry restore makes a sound one of it")
    }

    /// Whether a record was ever written: the first one goes into the second slot, so that a file
    /// that ends before it has none.
    private static func isWritten(_ descriptor: Int32) -> Bool {
        var found = stat()
        return fstat(descriptor, &found) != 0 || found.st_size >= off_t(slotDistance + slotBytes)
    }

    // MARK: Slots

    /// The records that can be understood.
    ///
    /// One that the disk cannot read may be the newer: it is not done without.
    private static func slots(
        in descriptor: Int32, of name: String
    ) throws(StorageError) -> [(record: WitnessRecord, sequence: UInt64)] {
        var found: [(record: WitnessRecord, sequence: UInt64)] = []
        for slot in [0, 1] {
            var bytes = [UInt8](repeating: 0, count: slotBytes)
            let count = pread(descriptor, &bytes, slotBytes, off_t(slot * slotDistance))
            guard count >= 0 else { throw .failed(name, "it cannot be read", errno) }
            if count == slotBytes, let slot = decode(bytes) { found.append(slot) }
        }
        return found
    }

    private static func encode(_ record: WitnessRecord, _ sequence: UInt64) -> [UInt8] {
        var bytes = magic
        let words: [UInt64] = [
            sequence, record.identity.high, record.identity.low, UInt64(record.commits),
            record.head.rawValue, UInt64(record.salt), record.isSealed ? 1 : 0, 0,
        ]
        for word in words { bytes += bigEndian(word) }
        return bytes + bigEndian(belfry_page_checksum(bytes, Int32(bytes.count), 0))
    }

    private static func decode(_ bytes: [UInt8]) -> (record: WitnessRecord, sequence: UInt64)? {
        let length = slotBytes - 8
        let words = stride(from: 8, to: slotBytes, by: 8).map { start in
            bytes[start..<start + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
        guard bytes.starts(with: magic),
            words[8] == belfry_page_checksum(bytes, Int32(length), 0)
        else { return nil }
        let record = WitnessRecord(
            identity: UUIDBytes(high: words[1], low: words[2]),
            commits: Int64(clamping: words[3]), head: LogPosition(words[4]),
            salt: UInt32(truncatingIfNeeded: words[5]), isSealed: words[6] == 1)
        return (record, words[0])
    }

    private static func bigEndian(_ word: UInt64) -> [UInt8] {
        stride(from: UInt64(56), through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> $0) }
    }

    // MARK: The write-ahead log

    /// The first word of the salt in the header of the write-ahead log of the store at `path`;
    /// `nil` if there is none, or nothing in it.
    static func salt(ofLogOf path: String) -> UInt32? {
        let descriptor = Glibc.open(path + "-wal", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return salt(in: descriptor)
    }

    private static func salt(in descriptor: Int32) -> UInt32? {
        var bytes = [UInt8](repeating: 0, count: 32)
        guard pread(descriptor, &bytes, 32, 0) == 32, bytes[0] == 0x37, bytes[1] == 0x7f else {
            return nil
        }
        return bytes[16..<20].reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Whether a log with this salt can be the one that `record` knows, or a later one.
    static func isOwn(_ salt: UInt32, after record: WitnessRecord) -> Bool {
        record.salt == 0 || salt &- record.salt <= restarts
    }
}

extension StoreWitness {
    /// In what the file behind `db` differs from what is `known` of it; `nil` if it does not.
    ///
    /// A file of before there were witnesses has none, and a backup needs none.
    static func problem(
        of db: EmbeddedConnection, _ known: WitnessRecord?, path: String
    ) throws -> StorageError? {
        let application = try Int32.fetchOne(db.database, sql: "PRAGMA application_id")
        guard application != StoreSchema.backupID, try db.hasTable("store") else { return nil }
        guard try db.hasColumn("isWitnessed", in: "store") else {
            return known.map { _ in
                .lost(path: path, reason: "it is older than the witness beside it")
            }
        }
        let row = try Row.fetchOne(
            db.database,
            sql: """
                SELECT store.identity, isWitnessed, commits, position FROM store, shardHead
                """)
        guard let row, let identity = UUIDBytes(bytes: row[0] as Data) else {
            return .damaged(path: path, reason: "the store has no identity")
        }
        guard let known else {
            guard row[1] as Bool else { return nil }
            return .lost(
                path: path,
                reason: "its witness, \(path)\(ending), is not there or empty, so that nobody "
                    + "knows whether the file is whole; belfry restore makes a store of a copy")
        }
        guard identity == known.identity else {
            return .lost(
                path: path,
                reason: "it is not the store that \(path)\(ending) is of; belfry restore makes a "
                    + "store of a copy")
        }
        let (commits, head) = (row[2] as Int64, LogPosition(stored: row[3]))
        guard known.commits <= commits else {
            return .lost(
                path: path,
                reason: "\(known.commits - commits) commits are missing that were acknowledged: "
                    + "the log ends at \(head), and went up to \(known.head); the file or its "
                    + "write-ahead log was cut or exchanged: bring back what is missing, or make a "
                    + "store of what is left with belfry restore")
        }
        guard !known.isSealed || belfry_sqlite_is_sealed(db.pointer) == 1 else {
            return .damaged(
                path: path, reason: "its header does not say that its pages have checksums")
        }
        return nil
    }
}

/// The witness could not be written.
struct WitnessFailure: Error {
    let code: Int32

    /// Whether there is no room, which passes, and only leaves the witness behind.
    var isNoRoom: Bool { code == ENOSPC || code == EDQUOT }
}

extension WitnessFailure: CustomStringConvertible {
    var description: String { "the witness cannot be written: \(String(cString: strerror(code)))" }
}
