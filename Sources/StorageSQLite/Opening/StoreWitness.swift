import CSQLite
import FoundationEssentials
import Glibc
import RelayModel
import Storage
import StorageSQL
import Synchronization

/// What the witness file knows about the acknowledged state of the store.
struct WitnessRecord: Sendable, Hashable {
    /// The identity of the store.
    var identity: UUIDBytes
    /// The number of acknowledged commits.
    var commits: Int64
    /// The last position of the log.
    var head: LogPosition
    /// The first word of the salt of the write-ahead log that contained the last commit; 0 if the
    /// log was folded into the file.
    var salt: UInt32
    /// Whether the pages of the file have checksums.
    var isSealed: Bool
    /// How many commits the file holds at least, without its write-ahead log, if that is known.
    var base: Int64?
    /// Whether the store ended in order with everything in the file; a start notes that it goes on
    /// before it commits anything.
    var isEnded = false
}

/// The file `<file>-witness`, which says which store it belongs to and how far its changes were
/// acknowledged.
///
/// With it a start notices that the database file was lost, cut or exchanged. It is written after
/// every commit, before the callers are answered, but it is not synced each time. So it never knows
/// more than is on the disk. If the process dies, it knows the last commit. After a power cut it
/// may know one of some seconds before.
final class StoreWitness: Sendable {
    static let ending = "-witness"
    private static let slotBytes = 80
    /// The slots are in different pages, so a torn write damages only one of them.
    private static let slotDistance = 4096
    private static let magic = Array("BelfryW1".utf8)
    /// The greatest difference of salts within one log; each restart of the write-ahead log adds
    /// one.
    ///
    /// A log whose salt is further from the recorded one belongs to another file.
    private static let restarts: UInt32 = 4096

    /// The open file, the number of its newest record, and that record.
    private struct Held {
        var descriptor: Int32
        var sequence: UInt64
        var newest: WitnessRecord?
        /// Whether this process wrote the newest record.
        var isOwn = false

        /// Returns `record` with what is known about the file alone.
        ///
        /// The writer begins a new log only when all of the earlier one is in the file. So the
        /// first commit in another log than the one before shows that the file holds the latter.
        func completed(_ record: WitnessRecord) -> WitnessRecord {
            guard let newest, newest.identity == record.identity, record.base == nil else {
                return record
            }
            var record = record
            let isInNewLog = isOwn && record.salt != 0 && record.salt != newest.salt
            record.base = isInNewLog ? newest.commits : newest.base
            return record
        }
    }

    /// Syncs the names in a folder to the disk; returns 0 or an errno.
    typealias NameSync = @Sendable (_ folder: String) -> Int32

    /// Syncs the names on the disk, where a folder can be read and synced.
    static let onDisk: NameSync = { folder in
        let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno == EACCES ? 0 : errno }
        defer { close(descriptor) }
        // Some file systems do not sync folders, and answer EINVAL.
        return fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno
    }

    private let path: String
    private let nameSync: NameSync
    private let held: Mutex<Held>
    /// The descriptor of the write-ahead log, once there is one.
    private let log = Mutex<Int32?>(nil)

    /// Opens the witness of the store at `path`, and creates it if it does not exist.
    init(
        of path: String, syncing nameSync: @escaping NameSync = StoreWitness.onDisk
    ) throws(StorageError) {
        let name = path + Self.ending
        self.path = path
        self.nameSync = nameSync
        let opened = Glibc.open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard opened >= 0 else {
            throw .failed(name, "it cannot be opened", errno)
        }
        do throws(StorageError) {
            let newest = try Self.slots(in: opened, of: name)
                .max { $0.sequence < $1.sequence }
            held = Mutex(
                Held(
                    descriptor: opened, sequence: newest?.sequence ?? 0, newest: newest?.record))
        } catch {
            close(opened)
            throw error
        }
    }

    deinit {
        close(held.withLock { $0.descriptor })
        if let log = log.withLock({ $0 }) { close(log) }
    }

    /// Returns the first word of the salt of the write-ahead log; 0 if there is none.
    ///
    /// The descriptor is kept, because the log stays the same file while a connection is open.
    func salt() -> UInt32 {
        log.withLock { log in
            if log == nil {
                let opened = Glibc.open(path + "-wal", O_RDONLY | O_CLOEXEC)
                if opened >= 0 { log = opened }
            }
            return log.flatMap(Self.salt) ?? 0
        }
    }

    /// Records a commit.
    ///
    /// - Throws: ``WitnessFailure`` with `errno` if it cannot be written.
    func note(_ record: WitnessRecord) throws(WitnessFailure) {
        let (file, known) = held.withLock { held in
            let known = held.completed(record)
            held.sequence += 1
            (held.newest, held.isOwn) = (known, true)
            return (held, known)
        }
        let bytes = Self.encode(known, file.sequence)
        let place = Int(file.sequence % 2) * Self.slotDistance
        let count = pwrite(file.descriptor, bytes, bytes.count, off_t(place))
        guard count == bytes.count else { throw WitnessFailure(code: count < 0 ? errno : ENOSPC) }
    }

    /// Records that all of `known` is in the file, and that any log may follow.
    func noteFolding(after known: WitnessRecord) throws(StorageError) {
        var record = known
        (record.salt, record.isEnded) = (0, false)
        try noteAtStart(record)
    }

    /// Durably records the state of the store before anything is acknowledged.
    ///
    /// - Throws: ``StorageError/noRoom(_:)`` if the disk is full, so that the start waits.
    func noteAtStart(_ record: WitnessRecord) throws(StorageError) {
        do {
            try note(record)
            try sync()
            try syncName()
        } catch {
            throw .failed(path + Self.ending, "it cannot be written", error.code)
        }
    }

    /// Syncs the records to the disk.
    func sync() throws(WitnessFailure) {
        guard fdatasync(held.withLock { $0.descriptor }) == 0 else {
            throw WitnessFailure(code: errno)
        }
    }

    /// Syncs the name of a new file: the store's file is refused without its witness.
    private func syncName() throws(WitnessFailure) {
        let code = nameSync(URL(filePath: path).deletingLastPathComponent().path)
        guard code == 0 else { throw WitnessFailure(code: code) }
    }

    /// Puts the witness back if its name leads to another file or to none.
    ///
    /// Without it the next start would refuse the store, although this process knows all about it.
    ///
    /// - Throws: ``WitnessFailure`` with `errno` if it cannot be written.
    func putBack(_ record: @autoclosure () -> WitnessRecord) throws(WitnessFailure) {
        guard !isInPlace else { return }
        let name = path + Self.ending
        let new = name + ".new"
        let made = Glibc.open(new, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard made >= 0 else { throw WitnessFailure(code: errno) }
        let former = held.withLock { held in
            defer { held.descriptor = made }
            return held.descriptor
        }
        close(former)
        try note(record())
        try sync()
        guard rename(new, name) == 0 else { throw WitnessFailure(code: errno) }
        try syncName()
    }

    private var isInPlace: Bool {
        var found = stat()
        guard fstat(held.withLock { $0.descriptor }, &found) == 0,
            let named = FileIdentity(path: path + Self.ending)
        else { return false }
        return named.isSame(as: FileIdentity(found))
    }

    /// Returns what the witness of the store at `path` knows; `nil` if there is none or it was
    /// never written.
    ///
    /// A witness without a record comes from a full disk or from a process that ended at its
    /// creation. In that case the database file does not say yet that it has a witness.
    ///
    /// - Throws: ``StorageError/damaged(path:reason:)`` if neither record can be decoded, and other
    ///   errors of ``StorageError`` if the disk cannot read it.
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
            reason: "neither of its two records can be read; if you know that the store is "
                + "complete, belfry restore makes a sound store from it")
    }

    /// Returns whether a record was ever written.
    ///
    /// The first record goes into the second slot, so a shorter file has none.
    private static func isWritten(_ descriptor: Int32) -> Bool {
        var found = stat()
        return fstat(descriptor, &found) != 0 || found.st_size >= off_t(slotDistance + slotBytes)
    }

    // MARK: Slots

    /// Returns the records that can be decoded.
    ///
    /// It throws if the disk cannot read a slot, because that one may be the newer.
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
            record.head.rawValue, UInt64(record.salt),
            (record.isSealed ? 1 : 0) + (record.isEnded ? 2 : 0),
            record.base.map { UInt64($0) + 1 } ?? 0,
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
            salt: UInt32(truncatingIfNeeded: words[5]), isSealed: words[6] & 1 == 1,
            base: words[7] == 0 ? nil : Int64(clamping: words[7] - 1),
            isEnded: words[6] & 2 == 2)
        return (record, words[0])
    }

    private static func bigEndian(_ word: UInt64) -> [UInt8] {
        stride(from: UInt64(56), through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> $0) }
    }

    // MARK: The write-ahead log

    /// Returns the first word of the salt in the header of the store's write-ahead log; `nil` if
    /// there is no log or it is empty.
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

    /// Returns whether a log with this salt can be the log that `record` knows, or a later one.
    static func isOwn(_ salt: UInt32, after record: WitnessRecord) -> Bool {
        record.salt == 0 || salt &- record.salt <= restarts
    }
}

extension StoreWitness {
    /// Returns the difference between the file behind `db` and what is `known` of it; `nil` if
    /// there is none.
    ///
    /// A file older than the introduction of witnesses has no witness, and a backup needs none.
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
                reason: "its witness, \(path)\(ending), is missing or empty, so it is unknown "
                    + "whether the file is complete; belfry restore makes a store from a copy")
        }
        guard identity == known.identity else {
            return .lost(
                path: path,
                reason: "it is not the store to which \(path)\(ending) belongs; belfry restore "
                    + "makes a store from a copy")
        }
        let (commits, head) = (row[2] as Int64, LogPosition(stored: row[3]))
        guard known.commits <= commits else {
            return .lost(
                path: path,
                reason: "\(known.commits - commits) acknowledged commits are missing: the log ends "
                    + "at \(head), but went up to \(known.head); the file or its write-ahead log "
                    + "was truncated or exchanged: bring back what is missing, or make a store "
                    + "from what is left with belfry restore")
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

    /// Whether the disk is full.
    ///
    /// This is temporary, and only means that the witness lags behind.
    var isNoRoom: Bool { code == ENOSPC || code == EDQUOT }
}

extension WitnessFailure: CustomStringConvertible {
    var description: String { "the witness cannot be written: \(String(cString: strerror(code)))" }
}
