/// Reads the bodies of many saved subscriptions, which ``Subscription/storedText()`` wrote.
///
/// The subscriptions of an application usually differ only by ID, owner and condition. The rest of
/// a body is the same for most, so it is parsed once and kept as a sample. A body of any other
/// shape is parsed as a whole.
package struct SubscriptionBodies {
    /// Parsed subscriptions by the bytes that follow the query in their bodies.
    private var samples: [[UInt8]: Subscription] = [:]
    /// The sample that was used last.
    private var last: (rest: [UInt8], sample: Subscription)?

    /// The maximum number of samples.
    private static let mostSamples = 1024
    /// The maximum length of the bytes after the query; longer ones are not kept as samples.
    private static let longestRest = 4096

    /// Creates a reader without samples.
    package init() {}

    /// Returns the subscription that has this body.
    ///
    /// - Throws: `JSONContractError`, or the parser's error.
    package mutating func subscription(
        _ body: String, of owner: SubscriptionOwner
    ) throws -> Subscription {
        let scan = SubscriptionBodyScan(Array(body.utf8))
        let isSample = scan.map { $0.rest.count <= Self.longestRest } ?? false
        if let scan, isSample, let sample = sample(scan.rest),
            sample.database == owner.database,
            let subscription = scan.subscription(like: sample, of: owner)
        {
            return subscription
        }
        let subscription = try Subscription(stored: try JSONValue(stored: body), of: owner)
        if let scan, isSample { keep(subscription, Array(scan.rest)) }
        return subscription
    }

    private mutating func sample(_ rest: ArraySlice<UInt8>) -> Subscription? {
        if let last, last.rest.count == rest.count, last.rest.elementsEqual(rest) {
            return last.sample
        }
        let key = Array(rest)
        guard let sample = samples[key] else { return nil }
        last = (key, sample)
        return sample
    }

    private mutating func keep(_ sample: Subscription, _ rest: [UInt8]) {
        if samples.count >= Self.mostSamples { samples.removeAll() }
        samples[rest] = sample
    }
}

/// The places of the parts in a body that ``Subscription/storedText()`` wrote, for a query
/// subscription whose condition is a text without arguments.
private struct SubscriptionBodyScan {
    private let bytes: [UInt8]
    private var index = 0
    private var id = 0..<0
    private var recordType = 0..<0
    private var form = PredicateForm.predicate
    private var source = 0..<0
    private var canonical = 0..<0

    /// The bytes after the query.
    var rest: ArraySlice<UInt8> { bytes[index...] }

    init?(_ bytes: [UInt8]) {
        self.bytes = bytes
        guard take(#"{"subscriptionID":"#), let id = string(),
            take(#","subscriptionType":"query","query":{"recordType":"#),
            let recordType = string()
        else { return nil }
        if take(#","predicate":"#) {
            form = .predicate
        } else if take(#","rql":"#) {
            form = .rql
        } else {
            return nil
        }
        guard let source = string(), take(#","canonicalPredicate":"#),
            let canonical = string(), take("}")
        else { return nil }
        (self.id, self.recordType) = (id, recordType)
        (self.source, self.canonical) = (source, canonical)
    }

    /// Returns a subscription like `sample`, with the ID, owner and condition of this body; `nil`
    /// if a text has an escape that only the parser reads.
    func subscription(like sample: Subscription, of owner: SubscriptionOwner) -> Subscription? {
        guard case .query(_, let zoneID) = sample.scope,
            let id = text(id).flatMap(SubscriptionID.init(rawValue:)),
            let recordType = text(recordType).flatMap(RecordType.init(rawValue:)),
            let source = text(source)
        else { return nil }
        let isSame = bytes[self.source].elementsEqual(bytes[canonical])
        guard let canonical = isSame ? source : text(canonical) else { return nil }
        var subscription = sample
        subscription.id = id
        subscription.owner = owner.user
        subscription.container = owner.container
        subscription.scope = .query(
            SubscriptionQuery(
                recordType: recordType, form: form, source: .string(source),
                canonical: canonical),
            zoneID: zoneID)
        return subscription
    }

    // MARK: Bytes

    private mutating func take(_ text: StaticString) -> Bool {
        let length = text.utf8CodeUnitCount
        guard bytes.count - index >= length else { return false }
        for offset in 0..<length where unsafe bytes[index + offset] != text.utf8Start[offset] {
            return false
        }
        index += length
        return true
    }

    /// Skips a string and returns the range of its content.
    private mutating func string() -> Range<Int>? {
        guard take("\"") else { return nil }
        let start = index
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                defer { index += 1 }
                return start..<index
            case UInt8(ascii: "\\"): index += 2
            case 0..<0x20: return nil
            default: index += 1
            }
        }
        return nil
    }

    /// Returns the text of a string's content; `nil` if it has escapes other than of quotes and
    /// backslashes.
    private func text(_ range: Range<Int>) -> String? {
        guard bytes[range].contains(UInt8(ascii: "\\")) else {
            return String(decoding: bytes[range], as: UTF8.self)
        }
        var content: [UInt8] = []
        content.reserveCapacity(range.count)
        var isEscaped = false
        for byte in bytes[range] {
            if isEscaped, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { return nil }
            if byte == UInt8(ascii: "\\"), !isEscaped {
                isEscaped = true
                continue
            }
            content.append(byte)
            isEscaped = false
        }
        return String(decoding: content, as: UTF8.self)
    }
}
