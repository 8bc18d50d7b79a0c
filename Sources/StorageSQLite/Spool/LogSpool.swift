import FoundationEssentials
import Glibc
import RelayModel
import Synchronization

/// Copies every frame of the write-ahead log into segments before a checkpoint may drop it.
///
/// No checkpoint has to wait for a copy of the file. A copy may take any time: the frames since the
/// generation in which it began, laid over it, make it the file as it was after any later commit. A
/// chain of segments ends if it cannot continue, for lack of disk space or because another process
/// had the file. The relay keeps writing, and a new chain begins with a new copy.
///
/// There are two locks. The writer notes commits under one that is never held for long. Frames are
/// copied under the other, which a checkpoint waits for.
package final class LogSpool: Sendable {
    /// The limits of the spool.
    package struct Settings: Sendable, Hashable {
        /// The maximum size of the segments that wait to be shipped, in bytes.
        package var bytes = 1 << 30
        /// The free space on the disk, in bytes, below which nothing is added to the spool.
        package var reserveBytes: UInt64 = 64 << 20
        /// The approximate maximum size of one segment, in bytes.
        package var segmentBytes = 16 << 20

        package init() {}
    }

    /// A segment that waits to be shipped.
    package struct Waiting: Sendable, Hashable {
        package let chain: String
        package let sequence: UInt64
        package let bytes: Int
        /// The last commit in it; `nil` if the segment is part of a single larger transaction.
        package let mark: LogMark?
    }

    /// The state of a chain.
    private struct Place {
        var chain: String
        var store: String
        var sequence: UInt64 = 0
        var since: UInt64 = 1
        var generation: LogGeneration?
        var frame = 0
        var sum: [UInt8] = []
        var mark: LogMark?
    }

    private struct Chain {
        var place: Place?
        var waiting: [Waiting] = []
        var ending: String?
        /// The file that the write-ahead log must be; `nil` before the store is open.
        var log: FileIdentity?
    }

    private let log: String
    private let folder: SpoolFolder
    private let settings: Settings
    private let now: @Sendable () -> Timestamp
    private let chain = Mutex(Chain())
    private let openMarks: Mutex<OpenMarks>

    /// Creates the spool of the store in the file `path`; nothing is read or written yet.
    init(at path: String, settings: Settings, now: @escaping @Sendable () -> Timestamp) {
        log = path + "-wal"
        folder = SpoolFolder(of: path)
        self.settings = settings
        self.now = now
        openMarks = Mutex(OpenMarks(log: log, path: folder.marks))
    }

    /// Returns the folder in which the segments of the store at `database` wait.
    package static func folder(of database: String) -> String {
        SpoolFolder(of: database).path
    }

    // MARK: The chain

    /// The name of the current chain; `nil` if there is none.
    package var chainName: String? { chain.withLock { $0.place?.chain } }

    /// Returns why the last chain ended; each reason is returned once.
    package func takeEnding() -> String? {
        chain.withLock { chain in
            defer { chain.ending = nil }
            return chain.ending
        }
    }

    /// Begins a chain with the content of the write-ahead log, and deletes the segments of earlier
    /// chains.
    func begin(_ name: String, store: String) throws {
        try chain.withLock { chain in
            chain.place = nil
            chain.waiting = []
            try folder.make()
            folder.clear()
            try openMarks.withLock { try $0.begin() }
            chain.place = Place(chain: name, store: store)
        }
    }

    /// Continues the chain whose segments are in the spool, if no other process has had the file
    /// since.
    ///
    /// - Parameter signature: The former content of the lock file.
    func resume(after signature: String) {
        chain.withLock { chain in
            let entries = folder.entries()
            guard let newest = entries.last else { return }
            do throws(SpoolFailure) {
                chain.place = try place(at: newest, after: signature)
                for (left, right) in zip(entries, entries.dropFirst())
                where left.sequence + 1 != right.sequence {
                    throw SpoolFailure("segment \(left.sequence + 1) is not in the spool")
                }
                try openMarks.withLock { openMarks throws(SpoolFailure) in
                    try openMarks.open(after: chain.place?.mark, beyond: chain.place?.frame ?? 0)
                }
                chain.waiting = entries.filter { !$0.isShipped }.map { entry in
                    let header = folder.header(of: entry)
                    return Waiting(
                        chain: header?.chain ?? "", sequence: entry.sequence,
                        bytes: folder.bytes(of: entry), mark: header?.marks.last)
                }
            } catch {
                end(&chain, error.description)
            }
        }
    }

    private func place(
        at newest: SpoolFolder.Entry, after signature: String
    ) throws(SpoolFailure) -> Place {
        guard let header = folder.header(of: newest), header.sequence == newest.sequence else {
            throw SpoolFailure("segment \(newest.sequence) in the spool cannot be read")
        }
        let isClosed = folder.takeClosing(at: header.chain, header.sequence)
        guard signature.split(separator: "\n").contains(header.chain[...]) else {
            throw SpoolFailure("another program has opened the file since then")
        }
        guard isClosed || header.boot == SpoolFolder.boot else {
            throw SpoolFailure("the machine was restarted, and the relay had not ended in order")
        }
        var place = Place(chain: header.chain, store: header.store)
        place.sequence = header.sequence
        place.since = header.since
        place.generation = header.generation
        place.frame = header.last
        place.sum = header.after
        place.mark = header.marks.last ?? lastMark(before: header.sequence)
        return place
    }

    private func lastMark(before sequence: UInt64) -> LogMark? {
        folder.entries().reversed().lazy.filter { $0.sequence < sequence }
            .compactMap { self.folder.header(of: $0)?.marks.last }.first
    }

    /// Continues the chain now that the store is open, or ends it if it belongs to another store.
    ///
    /// `sign` writes the chain's name into the lock file.
    func goOn(of store: String, sign: (String) -> Void) {
        chain.withLock { chain in
            guard let place = chain.place else { return }
            guard place.store == store else {
                return end(&chain, "the file belongs to another store")
            }
            // No other process has had the file since the chain's last commit, and the lock keeps
            // it so.
            sign(place.chain)
        }
    }

    /// Ends the chain; nothing is copied until another begins.
    package func end(because reason: String) {
        chain.withLock { if $0.place != nil { end(&$0, reason) } }
    }

    private func end(_ chain: inout Chain, _ reason: String) {
        chain.place = nil
        chain.waiting = []
        chain.ending = reason
        openMarks.withLock { $0.end() }
        folder.clear()
    }

    // MARK: Copying

    /// Tells which file the write-ahead log is from now on, as long as the store is open.
    ///
    /// Its name may lead to another file at any time, and frames of that one must get into no
    /// segment.
    func follow(_ log: FileIdentity?) {
        chain.withLock { $0.log = log }
        openMarks.withLock { openMarks in
            openMarks.forgetLog()
            openMarks.own = log
        }
    }

    /// Notes a durable commit before the callers are answered; the writer's thread calls it.
    func note(frames: Int, commits: Int64, head: LogPosition) {
        let moment = now()
        openMarks.withLock { $0.note(frames: frames, commits: commits, head: head, at: moment) }
    }

    /// Copies the committed frames that are in no segment yet; blocks.
    package func copy() {
        advance { log, _, _ in
            let (salt, frames) = openMarks.withLock { ($0.salt, $0.frames) }
            // Another generation has begun since, before which all of the noted one was copied.
            return log.generation.salt == salt ? frames : nil
        }
    }

    /// Copies everything up to frame `frames`, before a checkpoint drops it.
    func copyBeforeCheckpoint(_ frames: Int) {
        advance { _, _, _ in frames }
    }

    /// Copies everything that was committed, by any process, while no connection is writing.
    ///
    /// It reads the checksums of all new frames.
    func copyWhole() {
        advance { log, frame, sum throws(SpoolFailure) in
            let last = try log.lastCommit(after: frame, sum)
            openMarks.withLock { openMarks in
                openMarks.adopt(log.generation, beyond: frame)
                if last > frame { openMarks.mark(last, at: now()) }
            }
            return last
        }
        follow(nil)
    }

    /// Records that everything is copied and on the disk, so that the next start can continue the
    /// chain.
    func close() {
        chain.withLock { chain in
            guard let place = chain.place, place.sequence > 0 else { return }
            folder.close(at: place.chain, place.sequence)
        }
    }

    /// Copies up to the frame that `target` returns for the position of the chain in the log.
    ///
    /// If `target` returns `nil`, nothing is copied.
    private func advance(
        to target: (
            _ log: borrowing LogFile, _ frame: Int, _ sum: [UInt8]
        ) throws(SpoolFailure) -> Int?
    ) {
        chain.withLock { chain in
            guard var place = chain.place else { return }
            do throws(SpoolFailure) {
                guard let log = try LogFile(log, own: chain.log) else { return }
                if place.generation != log.generation {
                    // A header that is just being written may have the salt of one generation and
                    // the checksum of another.
                    if place.generation?.salt == log.generation.salt { return }
                    place.frame = 0
                    place.sum = log.generation.seed
                    place.since = place.sequence + 1
                    place.generation = log.generation
                }
                guard let last = try target(log, place.frame, place.sum) else { return }
                while place.frame < last {
                    try copyOne(log, through: last, to: &place, in: &chain)
                }
            } catch {
                end(&chain, error.description)
            }
            openMarks.withLock { $0.trim() }
        }
    }

    private func copyOne(
        _ log: borrowing LogFile, through last: Int, to place: inout Place, in chain: inout Chain
    ) throws(SpoolFailure) {
        let size = log.generation.frameBytes
        let first = place.frame + 1
        let count = min(max(1, settings.segmentBytes / size), last - place.frame)
        try checkRoom(for: count * size, beside: chain.waiting)
        let end = place.frame + count
        let marks = openMarks.withLock { $0.take(through: end) }.filter { $0.frame >= first }
        let after = try log.sum(of: end)
        let header = SegmentHeader(
            store: place.store, chain: place.chain, sequence: place.sequence + 1,
            since: place.since, generation: log.generation, first: first, count: count,
            before: place.sum, after: after, boot: SpoolFolder.boot, marks: marks)
        let bytes = try folder.write(header, log)
        place.sequence += 1
        place.frame = end
        place.sum = after
        place.mark = marks.last ?? place.mark
        chain.place = place
        chain.waiting.append(
            Waiting(chain: place.chain, sequence: place.sequence, bytes: bytes, mark: marks.last))
    }

    private func checkRoom(for bytes: Int, beside waiting: [Waiting]) throws(SpoolFailure) {
        let all = waiting.reduce(bytes) { $0 + $1.bytes }
        guard all <= settings.bytes else {
            throw SpoolFailure("more than \(settings.bytes) bytes wait to be shipped")
        }
        var answer = statvfs()
        guard statvfs(folder.path, &answer) == 0 else { return }
        let free = UInt64(answer.f_bavail) * UInt64(answer.f_frsize)
        guard free > settings.reserveBytes + UInt64(bytes) else {
            throw SpoolFailure("the disk has less than \(settings.reserveBytes) bytes free")
        }
    }
}

extension LogSpool {
    // MARK: Shipping

    /// The segments that wait to be shipped, in order.
    package var waiting: [Waiting] { chain.withLock { $0.waiting } }

    /// The segments that a copy begun now will need: the first, and the last so far; `nil` if there
    /// is no chain.
    package var extent: (chain: String, since: UInt64, last: UInt64)? {
        chain.withLock { chain in
            chain.place.map { ($0.chain, $0.since, $0.sequence) }
        }
    }

    /// Reads a waiting segment and verifies its checksums; `nil` if it no longer waits.
    ///
    /// A damaged segment ends the chain.
    package func read(_ waiting: Waiting) -> LogSegment? {
        guard let data = FileManager.default.contents(atPath: folder.file(waiting.sequence)),
            let segment = LogSegment([UInt8](data)), segment.isWhole,
            segment.header.chain == waiting.chain
        else {
            chain.withLock { chain in
                guard chain.waiting.contains(waiting) else { return }
                end(&chain, "segment \(waiting.sequence) in the spool is damaged")
            }
            return nil
        }
        return segment
    }

    /// Removes a segment that was shipped.
    package func letGo(_ shipped: Waiting) {
        chain.withLock { chain in
            guard let index = chain.waiting.firstIndex(of: shipped) else { return }
            chain.waiting.remove(at: index)
            folder.letGo(
                shipped.sequence, isNewest: shipped.sequence == chain.place?.sequence)
        }
    }
}
