import Crypto
package import RelayModel

extension ChangeSource {
    /// Decodes a webhook that has been verified.
    ///
    /// A change that cannot be mapped is parked or refused in its place, and the others are
    /// decoded. A body that is a single change, or cannot be divided into changes, is parked or
    /// refused as a whole.
    ///
    /// - Complexity: O(*n*) in the length of the body.
    /// - Throws: ``DecodeError`` with the status of the answer.
    package func decode(_ request: WebhookRequest) throws(DecodeError) -> DecodedBatch {
        try checkForm(request)
        var batch = DecodedBatch(items: [], transportKey: transportKey(request.headers))
        let items: [SourceItem]
        do {
            items = try divide(try body(of: request), headers: request.headers)
        } catch {
            guard onUnmappable == .park, error.status != .tooLarge else { throw error }
            batch.items = [.parked(parked(request.body, error, request.headers))]
            return batch
        }
        var readerRoom = Self.mostReaderBytes
        for item in items {
            batch.items.append(
                contentsOf: try decode(
                    item, transportKey: batch.transportKey, within: &readerRoom))
        }
        batch.joinContents()
        if batch.items.count > 1 || items.contains(where: { $0.index != nil }) {
            batch.key = key(of: batch, places: items.count)
        }
        return batch
    }

    /// Decodes a parked body again, after the mapping has been corrected.
    ///
    /// - Throws: ``DecodeError``, as for the webhook itself.
    package func replay(
        _ parked: ParkedBody, receivedAt: Timestamp
    ) throws(DecodeError) -> DecodedBatch {
        var request = WebhookRequest(body: parked.raw.utf8, receivedAt: receivedAt)
        if case .object(let object) = parked.raw, object.members.count == 1,
            case .string(let text)? = object["$bytes"], let bytes = Base64.decode(text)
        {
            request.body = bytes
        }
        for (name, value) in parked.headers { request.headers.append(name, value) }
        guard parked.index != nil || isDocument(parked.raw, of: request) else {
            return try decode(request)
        }
        try checkForm(request)
        let item = SourceItem(
            value: parked.raw, path: "", index: parked.index, headers: request.headers,
            source: self)
        let key = transportKey(request.headers)
        var readerRoom = Self.mostReaderBytes
        var batch = DecodedBatch(
            items: try decode(item, transportKey: key, within: &readerRoom), transportKey: key)
        if parked.index == nil { batch.joinContents() }
        return batch
    }

    /// Returns whether the parked value is a document that was read from a body, not the body
    /// itself.
    ///
    /// That is the case for a token's claims, and for an event whose attributes were headers.
    private func isDocument(_ raw: JSONValue, of request: WebhookRequest) -> Bool {
        guard case .object(let object) = raw else { return false }
        if preset == .minapp { return object["$bytes"] == nil }
        return isEventInBinaryMode(request) && object["specversion"] != nil
    }

    /// Returns the key of a delivery whose changes are identified by its ID and their places in it.
    private func key(of batch: DecodedBatch, places: Int) -> DedupeKey? {
        let isKnownByPlaces = batch.items.contains { item in
            if case .change(_, let key) = item { key?.kind == .delivery } else { false }
        }
        guard let text = batch.transportKey, isKnownByPlaces else { return nil }
        return DedupeKey(
            .delivery, text, digest: Array(SHA256.hash(data: Array("\(places) places".utf8))))
    }

    private func decode(
        _ item: SourceItem, transportKey: String?, within readerRoom: inout Int
    ) throws(DecodeError) -> [DecodedItem] {
        var reported: [ReportedChange] = []
        do throws(JSONContractError) {
            switch try read(item) {
            case .ignored(let reason): return [.ignored(reason: reason)]
            case .ended(let end): return [self.item(of: end)]
            case .changes(let changes):
                reported = changes
                return try map(
                    changes, item: item, transportKey: transportKey, within: &readerRoom)
            case .partly(let changes, let error):
                guard onUnmappable == .park else { throw error }
                let told = try map(
                    changes, item: item, transportKey: transportKey, within: &readerRoom)
                return told + [.parked(parked(item, error))]
            }
        } catch {
            switch (onUnmappable, item.index) {
            case (.park, _):
                return half(of: reported, item: item, transportKey: transportKey)
                    + [.parked(parked(item, error))]
            case (.reject, .some):
                return [.refused(path: error.path, reason: error.reason)]
            case (.reject, nil):
                throw DecodeError(.unmappable, path: error.path, reason: error.reason)
            }
        }
    }

    private func parked(_ item: SourceItem, _ error: JSONContractError) -> ParkedBody {
        var parked = ParkedBody(
            reason: error.reason, path: error.path, raw: kept(item.value), index: item.index,
            headers: item.kept.value { replayHeaders(item.headers) })
        // The place is the same for all rows, as in those of a follower within the relay.
        guard preset == .postgres, item.index != nil else { return parked }
        parked.index = 0
        if parked.path.hasPrefix(item.path) {
            parked.path = "[0]" + parked.path.dropFirst(item.path.count)
        }
        return parked
    }

    /// The maximum size of the readers' names in all changes of one webhook, in bytes.
    ///
    /// If each change has its own readers, they cannot take more than the body. But if the mapping
    /// gives all changes the readers of one list, a body of a megabyte would become gigabytes in
    /// the log.
    static let mostReaderBytes = 8 * Limits.maximumWebhookBytes

    func map(
        _ reported: [ReportedChange], item: SourceItem, transportKey: String?,
        within readerRoom: inout Int
    ) throws(JSONContractError) -> [DecodedItem] {
        var mapped: [(change: RecordChange, reported: ReportedChange)] = []
        var ignored = 0
        var left = readerRoom
        for report in reported {
            if mapping.ignores(report.table) {
                ignored += 1
                continue
            }
            for change in try mapping.changes(from: report, item: item) {
                left -= change.readers?.reduce(0) { $0 + 16 + $1.utf8.count } ?? 0
                guard left >= 0 else {
                    throw item.failure(
                        "the changes of one webhook have too many readers together")
                }
                mapped.append((change, report))
            }
        }
        readerRoom = left
        if mapped.isEmpty, ignored > 0 { return [.ignored(reason: "the table is ignored")] }
        if mapped.isEmpty, !reported.isEmpty {
            return [.ignored(reason: "the record's name now belongs to another row")]
        }
        return mapped.enumerated().map { index, entry in
            .change(
                entry.change,
                key: key(
                    of: entry.change, reported: entry.reported, item: item,
                    transportKey: transportKey, part: mapped.count > 1 ? index : nil))
        }
    }

    /// Returns the part of an unmappable update that can still be reported.
    ///
    /// If the update moved a row from or to a key that does not make a name, the record with the
    /// other key was deleted or created. That change gets the key that it would have within the
    /// pair, so that it is recognised if both are reported later.
    func half(
        of reported: [ReportedChange], item: SourceItem, transportKey: String?
    ) -> [DecodedItem] {
        guard reported.count == 1, let report = reported.first, !mapping.ignores(report.table),
            let half = mapping.half(of: report, item: item)
        else { return [] }
        return [
            .change(
                half,
                key: key(
                    of: half, reported: report, item: item, transportKey: transportKey,
                    part: half.operation == .delete ? 0 : 1))
        ]
    }

    /// Returns the key of a change: the source's position, else a stable delivery ID, else the
    /// configured expression, else the content within the window.
    private func key(
        of change: RecordChange, reported: ReportedChange, item: SourceItem,
        transportKey: String?, part: Int?
    ) -> DedupeKey? {
        if reported.isToldByParts, contentWindow > .zero {
            var bare = change
            bare.before = nil
            bare.after = nil
            return contentKey(of: change, bare.contentDigest)
        }
        let isKnown = reported.key != nil || transportKey != nil || !mapping.dedupe.isEmpty
        // A digest is expensive, and without any key it would not be used.
        guard isKnown || contentWindow > .zero else { return nil }
        let digest = change.contentDigest
        let suffix = part.map { "/\($0)" } ?? ""
        if let key = reported.key {
            let name = reported.sharesPosition ? ";\(change.recordID.recordName)" : ""
            // A preset's expression contains the time of the last update. Two different saves
            // within one millisecond must not count as one, so the content is part of the key.
            let content =
                key.kind == .expression ? ";\(Hexadecimal.encode(digest.prefix(8)))" : ""
            let text = key.text + name + content + suffix
            return DedupeKey(
                key.kind, text,
                digest: reported.isLookedUp
                    ? Array(SHA256.hash(data: Array(text.utf8))) : digest)
        }
        if let transportKey {
            let place = item.index.map { "#\($0)" } ?? ""
            return DedupeKey(.delivery, transportKey + place + suffix, digest: digest)
        }
        if let text = expression(change, item: item) {
            return DedupeKey(.expression, text + suffix, digest: digest)
        }
        return contentWindow > .zero ? contentKey(of: change, digest) : nil
    }

    /// Returns a key by the record's latest content.
    ///
    /// Equal content counts as a repetition only if no other content came in between. So a field
    /// that is set, reset and set again within the window makes three changes.
    private func contentKey(of change: RecordChange, _ digest: [UInt8]) -> DedupeKey {
        DedupeKey(
            .content, Hexadecimal.encode(change.addressDigest), digest: digest,
            window: contentWindow)
    }

    private func expression(_ change: RecordChange, item: SourceItem) -> String? {
        guard !mapping.dedupe.isEmpty else { return nil }
        var parts: [JSONValue] = []
        for place in mapping.dedupe {
            let fields = [change.after?.fields ?? [:], change.before?.fields ?? [:]]
            guard let text = item.value(at: place, fields: fields[0], fields[1])?.nameText else {
                return nil
            }
            parts.append(.string(text))
        }
        return JSONValue.array(parts).text
    }
}
