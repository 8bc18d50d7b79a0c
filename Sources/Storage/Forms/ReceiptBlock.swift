package import RelayModel

/// The receipts of one step in compact form: about 30 bytes each, in one row.
///
/// Layout, version 1: the byte 1; the number of reasons, each with its length and UTF-8; the number
/// of receipts. Each receipt is 16 bytes of delivery ID, then integers of variable length:
/// position, offset, subscription serial, device serial, outcome, status, index of the reason,
/// attempt, and the moment in nanoseconds. Position, serials and moment are differences from the
/// previous receipt. Integers take seven bits per byte, the lowest first; those that may be
/// negative are zigzag-coded. `docs/storage.md` describes the layout for operators.
package struct ReceiptBlock: Sendable {
    static let version: UInt8 = 1

    /// The number of receipts.
    package let count: Int
    /// The first and last position that occur.
    package let positions: ClosedRange<LogPosition>
    /// The latest end of an attempt.
    package let lastAt: Timestamp
    /// The outcomes that occur, one bit each.
    package let outcomes: Int64
    /// The encoded bytes.
    package let body: [UInt8]

    /// Encodes receipts, or returns `nil` if there are none.
    package init?(_ receipts: [DeliveryReceipt]) {
        guard let first = receipts.first else { return nil }
        count = receipts.count
        var positions = first.ordinal.position...first.ordinal.position
        var lastAt = first.at
        var outcomes: Int64 = 0
        for receipt in receipts {
            let position = receipt.ordinal.position
            positions = min(positions.lowerBound, position)...max(positions.upperBound, position)
            lastAt = max(lastAt, receipt.at)
            outcomes |= receipt.outcome.bit
        }
        self.positions = positions
        self.lastAt = lastAt
        self.outcomes = outcomes
        body = ReceiptWriter.encode(receipts)
    }

    /// Decodes the receipts in `body` in the order in which they were written, or returns `nil` if
    /// it is damaged.
    ///
    /// If `delivery` is given, other deliveries are skipped. So are receipts that `isWanted`
    /// rejects by their stored position, subscription and device. A change with very many receipts
    /// often has only one or two that a caller asks for.
    package static func decode(
        _ body: some Collection<UInt8>, of delivery: DeliveryID? = nil,
        where isWanted: (_ position: Int64, _ subscription: Int64, _ device: Int64) -> Bool = {
            _, _, _ in true
        }
    ) -> [DeliveryReceipt]? {
        var reader = ReceiptReader(bytes: Array(body))
        return reader.receipts(of: delivery.map { Array($0.uuid.bytes) }, where: isWanted)
    }
}

extension DeliveryReceipt.Outcome {
    /// The outcome's bit in ``ReceiptBlock/outcomes``.
    package var bit: Int64 { 1 << Int64(rawValue) }
}

/// The previous receipt's values, which the next receipt is encoded relative to.
private struct ReceiptBase {
    var position: Int64 = 0
    var subscription: Int64 = 0
    var device: Int64 = 0
    var at: Int64 = 0
}

private struct ReceiptWriter {
    private var bytes: [UInt8] = []
    private var base = ReceiptBase()

    static func encode(_ receipts: [DeliveryReceipt]) -> [UInt8] {
        var writer = ReceiptWriter()
        writer.bytes.reserveCapacity(receipts.count * 32 + 64)
        writer.bytes.append(ReceiptBlock.version)
        var indices: [String: UInt64] = [:]
        var reasons: [String] = []
        for receipt in receipts where indices[receipt.reason] == nil {
            indices[receipt.reason] = UInt64(reasons.count)
            reasons.append(receipt.reason)
        }
        writer.write(UInt64(reasons.count))
        for reason in reasons {
            writer.write(UInt64(reason.utf8.count))
            writer.bytes.append(contentsOf: reason.utf8)
        }
        writer.write(UInt64(receipts.count))
        for receipt in receipts { writer.write(receipt, reason: indices[receipt.reason] ?? 0) }
        return writer.bytes
    }

    private mutating func write(_ receipt: DeliveryReceipt, reason: UInt64) {
        bytes.append(contentsOf: receipt.deliveryID.uuid.bytes)
        difference(receipt.ordinal.position.stored, \.position)
        write(UInt64(receipt.ordinal.offset))
        difference(receipt.subscriptionSerial.stored, \.subscription)
        difference(receipt.deviceSerial.stored, \.device)
        write(UInt64(receipt.outcome.rawValue))
        write(UInt64(receipt.status))
        write(reason)
        write(UInt64(receipt.attempt))
        difference(receipt.at.stored, \.at)
    }

    private mutating func difference(
        _ value: Int64, _ part: WritableKeyPath<ReceiptBase, Int64>
    ) {
        let difference = value &- base[keyPath: part]
        base[keyPath: part] = value
        write(UInt64(bitPattern: (difference << 1) ^ (difference >> 63)))
    }

    private mutating func write(_ value: UInt64) { LEB128.append(value, to: &bytes) }
}

private struct ReceiptReader {
    let bytes: [UInt8]
    private var index = 0
    private var base = ReceiptBase()

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The fields of a receipt that are not encoded relative to the previous one.
    private struct Fields {
        /// The index at which the delivery ID begins.
        let identity: Int
        let offset: UInt64
        let outcome: DeliveryReceipt.Outcome
        let status: UInt64
        let reason: Int
        let attempt: UInt64
    }

    private static let identityBytes = 16

    mutating func receipts(
        of identity: [UInt8]?, where isWanted: (Int64, Int64, Int64) -> Bool
    ) -> [DeliveryReceipt]? {
        guard bytes.first == ReceiptBlock.version else { return nil }
        index = 1
        guard let reasons = reasons(), let count = number(), count <= UInt64(bytes.count) else {
            return nil
        }
        var receipts: [DeliveryReceipt] = []
        for _ in 0..<count {
            guard let fields = fields(reasons: reasons.count) else { return nil }
            guard isWanted(base.position, base.subscription, base.device) else { continue }
            if let identity, !has(identity, at: fields.identity) { continue }
            guard let receipt = receipt(fields, reasons) else { return nil }
            receipts.append(receipt)
        }
        return index == bytes.count ? receipts : nil
    }

    private mutating func reasons() -> [String]? {
        guard let count = number(), count <= UInt64(bytes.count) else { return nil }
        var reasons: [String] = []
        for _ in 0..<count {
            guard let length = number(), let slice = take(length) else { return nil }
            reasons.append(String(decoding: slice, as: UTF8.self))
        }
        return reasons
    }

    /// Reads the next receipt; `base` then holds its position, serials and moment.
    private mutating func fields(reasons: Int) -> Fields? {
        let identity = index
        guard bytes.count - index >= Self.identityBytes else { return nil }
        index += Self.identityBytes
        guard let position = difference(), let offset = number(),
            let subscription = difference(), let device = difference(),
            let outcome = number().flatMap({
                DeliveryReceipt.Outcome(rawValue: UInt8(clamping: $0))
            }),
            let status = number(), let reason = number(), reason < UInt64(reasons),
            let attempt = number(), let at = difference()
        else { return nil }
        base.position &+= position
        base.subscription &+= subscription
        base.device &+= device
        base.at &+= at
        return Fields(
            identity: identity, offset: offset, outcome: outcome, status: status,
            reason: Int(reason), attempt: attempt)
    }

    private func has(_ identity: [UInt8], at index: Int) -> Bool {
        for place in identity.indices where bytes[index + place] != identity[place] {
            return false
        }
        return true
    }

    private func receipt(_ fields: Fields, _ reasons: [String]) -> DeliveryReceipt? {
        let identity = bytes[fields.identity..<(fields.identity + Self.identityBytes)]
        guard let uuid = UUIDBytes(bytes: identity) else { return nil }
        return DeliveryReceipt(
            deliveryID: DeliveryID(uuid),
            ordinal: DeliveryOrdinal(
                position: LogPosition(stored: base.position),
                offset: UInt32(clamping: fields.offset)),
            subscriptionSerial: UInt64(clamping: base.subscription),
            deviceSerial: UInt64(clamping: base.device), outcome: fields.outcome,
            status: UInt16(clamping: fields.status), reason: reasons[fields.reason],
            attempt: UInt16(clamping: fields.attempt), at: Timestamp(stored: base.at))
    }

    private mutating func difference() -> Int64? {
        guard let coded = number() else { return nil }
        return Int64(bitPattern: coded >> 1) ^ -Int64(bitPattern: coded & 1)
    }

    private mutating func number() -> UInt64? { LEB128.read(bytes, at: &index) }

    private mutating func take(_ count: UInt64) -> ArraySlice<UInt8>? {
        guard count <= UInt64(bytes.count - index) else { return nil }
        defer { index += Int(count) }
        return bytes[index..<(index + Int(count))]
    }
}
