import CCurl
import RelayModel

/// A zero-terminated buffer of bytes, which grows when it must and otherwise stays in place.
final class TransferBuffer {
    private(set) var text: UnsafeMutablePointer<CChar>
    private(set) var count = 0
    private var capacity: Int

    init(capacity: Int) {
        self.capacity = capacity
        text = .allocate(capacity: capacity)
    }

    deinit {
        text.deallocate()
    }

    /// Replaces the bytes.
    func write(_ bytes: [UInt8]) {
        clear()
        bytes.withUnsafeBufferPointer { append($0) }
    }

    /// Replaces the bytes by two texts, one after the other.
    func write(_ first: StaticString, _ second: String) {
        clear()
        append(UnsafeBufferPointer(start: first.utf8Start, count: first.utf8CodeUnitCount))
        append(second)
    }

    /// Replaces the bytes by a text and a UUID in canonical form, in lower case.
    func write(_ first: StaticString, _ identifier: UUIDBytes) {
        clear()
        append(UnsafeBufferPointer(start: first.utf8Start, count: first.utf8CodeUnitCount))
        if count + 37 > capacity { grow(to: count + 37) }
        for nibble in 0..<32 {
            if nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20 { appendByte(0x2D) }
            let half = nibble < 16 ? identifier.high : identifier.low
            let digit = UInt8(truncatingIfNeeded: half >> UInt64(60 - 4 * (nibble & 15))) & 15
            appendByte(digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
        text[count] = 0
    }

    private func clear() {
        count = 0
        text[0] = 0
    }

    private func appendByte(_ byte: UInt8) {
        text[count] = CChar(bitPattern: byte)
        count += 1
    }

    private func append(_ string: String) {
        var string = string
        string.withUTF8 { append($0) }
    }

    private func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        if count + bytes.count >= capacity { grow(to: count + bytes.count + 1) }
        if let start = bytes.baseAddress {
            UnsafeMutableRawPointer(text + count).copyMemory(from: start, byteCount: bytes.count)
        }
        count += bytes.count
        text[count] = 0
    }

    private func grow(to needed: Int) {
        let larger = max(needed, 2 * capacity)
        let place = UnsafeMutablePointer<CChar>.allocate(capacity: larger)
        place.update(from: text, count: count)
        text.deallocate()
        text = place
        capacity = larger
    }
}

/// The headers of one request alone, in front of those that it shares with others.
final class OwnHeaders {
    private let identity = TransferBuffer(capacity: 64)
    private let expiration = TransferBuffer(capacity: 48)
    private let collapse = TransferBuffer(capacity: 96)
    private let nodes = UnsafeMutablePointer<curl_slist>.allocate(capacity: 3)
    private var count = 0

    init() {
        nodes.initialize(repeating: curl_slist(data: nil, next: nil), count: 3)
    }

    deinit {
        nodes.deallocate()
    }

    /// Writes the headers of `request`, which is sent at `now`.
    func write(_ request: PushRequest, at now: Timestamp) {
        count = 0
        identity.write("apns-id: ", request.deliveryID.uuid)
        add(identity)
        if let moment = request.notification.expiration {
            // APNs reads 0 as "try once, now", which is what a time in the past means.
            expiration.write("apns-expiration: ", String(moment <= now ? 0 : moment.seconds))
            add(expiration)
        }
        if let identifier = request.notification.collapseID {
            collapse.write("apns-collapse-id: ", identifier)
            add(collapse)
        }
    }

    /// Returns the list of these headers, followed by those of `shared`.
    func list(before shared: CurlHeaders) -> UnsafeMutablePointer<curl_slist> {
        for index in 0..<count {
            nodes[index].next = index + 1 < count ? nodes + index + 1 : shared.list
        }
        return nodes
    }

    private func add(_ line: TransferBuffer) {
        nodes[count].data = line.text
        count += 1
    }
}
