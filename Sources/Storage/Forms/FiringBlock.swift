package import RelayModel

/// What one step says about subscriptions, in compact form: two or three bytes for each firing, in
/// one row until it is added up.
///
/// Layout, version 1: the byte 1; the number of notes; for each note its position, its moment, the
/// fired serials, the serials that reached no device with a reason code each, and the serials with
/// evaluation errors, each list preceded by its length; the number of texts, each with its length
/// and UTF-8; the number of ends, each with serial, position, moment and the index of its text.
/// Positions, moments and serials are differences from the previous one, zigzag-coded. Integers
/// take seven bits per byte, the lowest first.
package struct FiringBlock: Sendable {
    static let version: UInt8 = 1

    /// The number of firings, errors and ends in the block.
    package let count: Int
    /// The encoded bytes.
    package let body: [UInt8]

    /// Encodes the notes and ends of one step, or returns `nil` if there are none.
    package init?(_ notes: [FiringNote], ends: [DeadLetter]) {
        let count = notes.reduce(0) { $0 + $1.count } + ends.count
        guard count > 0 else { return nil }
        self.count = count
        body = FiringWriter.encode(notes, ends, room: count * 3 + notes.count * 12)
    }

    /// Adds the content of a block to `sums`, for the subscriptions that `isWanted` accepts.
    ///
    /// - Returns: `false` if the block cannot be read. `sums` may then contain a part of it.
    package static func add(
        _ body: some Collection<UInt8>, to sums: inout [UInt64: SubscriptionHealth],
        where isWanted: (UInt64) -> Bool = { _ in true }
    ) -> Bool {
        var reader = FiringReader(bytes: Array(body))
        return reader.add(to: &sums, where: isWanted)
    }
}

private struct FiringWriter {
    private var bytes: [UInt8] = []
    private var position: Int64 = 0
    private var at: Int64 = 0
    private var serial: Int64 = 0

    static func encode(_ notes: [FiringNote], _ ends: [DeadLetter], room: Int) -> [UInt8] {
        var writer = FiringWriter()
        writer.bytes.reserveCapacity(room)
        writer.bytes.append(FiringBlock.version)
        writer.write(UInt64(notes.count))
        for note in notes { writer.write(note) }
        writer.write(ends)
        return writer.bytes
    }

    private mutating func write(_ note: FiringNote) {
        difference(note.position.stored, \.position)
        difference(note.at.stored, \.at)
        write(UInt64(note.fired.count))
        for serial in note.fired { difference(serial.stored, \.serial) }
        write(UInt64(note.unreached.count))
        for firing in note.unreached {
            difference(firing.serial.stored, \.serial)
            write(UInt64(firing.reason.rawValue))
        }
        write(UInt64(note.errors.count))
        for serial in note.errors { difference(serial.stored, \.serial) }
    }

    private mutating func write(_ ends: [DeadLetter]) {
        var indices: [String: UInt64] = [:]
        var reasons: [String] = []
        for end in ends where indices[end.reason] == nil {
            indices[end.reason] = UInt64(reasons.count)
            reasons.append(end.reason)
        }
        write(UInt64(reasons.count))
        for reason in reasons {
            write(UInt64(reason.utf8.count))
            bytes.append(contentsOf: reason.utf8)
        }
        write(UInt64(ends.count))
        for end in ends {
            difference(end.delivery.subscriptionSerial.stored, \.serial)
            difference(end.delivery.delivery.ordinal.position.stored, \.position)
            difference(end.at.stored, \.at)
            write(indices[end.reason] ?? 0)
        }
    }

    private mutating func difference(
        _ value: Int64, _ part: WritableKeyPath<FiringWriter, Int64>
    ) {
        let difference = value &- self[keyPath: part]
        self[keyPath: part] = value
        write(UInt64(bitPattern: (difference << 1) ^ (difference >> 63)))
    }

    private mutating func write(_ value: UInt64) { LEB128.append(value, to: &bytes) }
}

private struct FiringReader {
    private let bytes: [UInt8]
    private var index = 0
    private var position: Int64 = 0
    private var at: Int64 = 0
    private var serial: Int64 = 0

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func add(
        to sums: inout [UInt64: SubscriptionHealth], where isWanted: (UInt64) -> Bool
    ) -> Bool {
        guard bytes.first == FiringBlock.version else { return false }
        index = 1
        guard let notes = length() else { return false }
        for _ in 0..<notes {
            guard addNote(to: &sums, where: isWanted) else { return false }
        }
        return addEnds(to: &sums, where: isWanted) && index == bytes.count
    }

    private mutating func addNote(
        to sums: inout [UInt64: SubscriptionHealth], where isWanted: (UInt64) -> Bool
    ) -> Bool {
        guard sum(\.position), sum(\.at), let fired = length() else { return false }
        for _ in 0..<fired {
            guard sum(\.serial) else { return false }
            guard isWanted(named) else { continue }
            sums[named, default: SubscriptionHealth()].noteFiring(event(.init()))
        }
        guard let unreached = length() else { return false }
        for _ in 0..<unreached {
            guard sum(\.serial), let code = number(),
                let reason = UnreachedFiring.Reason(rawValue: UInt8(clamping: code))
            else { return false }
            guard isWanted(named) else { continue }
            sums[named, default: SubscriptionHealth()].noteUnreached(event(reason))
        }
        guard let errors = length() else { return false }
        for _ in 0..<errors {
            guard sum(\.serial) else { return false }
            guard isWanted(named) else { continue }
            sums[named, default: SubscriptionHealth()].noteError(event(.init()))
        }
        return true
    }

    private mutating func addEnds(
        to sums: inout [UInt64: SubscriptionHealth], where isWanted: (UInt64) -> Bool
    ) -> Bool {
        guard let texts = length() else { return false }
        var reasons: [String] = []
        for _ in 0..<texts {
            guard let length = length(), length <= bytes.count - index else { return false }
            reasons.append(String(decoding: bytes[index..<index + length], as: UTF8.self))
            index += length
        }
        guard let ends = length() else { return false }
        for _ in 0..<ends {
            guard sum(\.serial), sum(\.position), sum(\.at), let reason = number(),
                reason < UInt64(reasons.count)
            else { return false }
            guard isWanted(named) else { continue }
            sums[named, default: SubscriptionHealth()].noteEnd(event(reasons[Int(reason)]))
        }
        return true
    }

    private var named: UInt64 { UInt64(clamping: serial) }

    private func event<Detail>(_ detail: Detail) -> SubscriptionHealth.Event<Detail> {
        SubscriptionHealth.Event(
            position: LogPosition(stored: position), at: Timestamp(stored: at), detail: detail)
    }

    private mutating func sum(_ part: WritableKeyPath<FiringReader, Int64>) -> Bool {
        guard let coded = number() else { return false }
        self[keyPath: part] &+= Int64(bitPattern: coded >> 1) ^ -Int64(bitPattern: coded & 1)
        return true
    }

    /// Reads a count, which can never exceed the number of bytes.
    private mutating func length() -> Int? {
        guard let length = number(), length <= UInt64(bytes.count) else { return nil }
        return Int(length)
    }

    private mutating func number() -> UInt64? { LEB128.read(bytes, at: &index) }
}

private extension SubscriptionHealth {
    mutating func noteFiring(_ event: Event<Nothing>) {
        fired += 1
        if lastFired.map({ $0.position < event.position }) ?? true { lastFired = event }
    }

    mutating func noteUnreached(_ event: Event<UnreachedFiring.Reason>) {
        unreached[event.detail, default: 0] += 1
        if lastUnreached.map({ $0.position < event.position }) ?? true { lastUnreached = event }
    }

    mutating func noteError(_ event: Event<Nothing>) {
        errors += 1
        if lastError.map({ $0.position < event.position }) ?? true { lastError = event }
    }

    mutating func noteEnd(_ event: Event<String>) {
        undelivered += 1
        lastUndelivered = event
    }
}
