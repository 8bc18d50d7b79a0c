import RelayModel

/// Decodes a change from its text in the log into slots and hashed keys, without creating the
/// change.
///
/// It is one pass over the text, which skips what no predicate uses. The result is that of
/// ``ChangeDecoder`` for the same change.
struct StoredChangeDecoder {
    let catalog: Catalog
    let seed: UInt64

    /// The parts of the text outside of the images.
    private struct Head {
        var operation: FiresOn?
        var database = DatabaseScope.public
        var owner: UserID?
        var zoneID = ZoneID.default
        var plan: Int?
        var hasType = false
        var occurredAt: Timestamp?
    }

    /// Decodes the change, and returns whether the text has the form and order that
    /// ``RelayModel/RecordChange/storedForm`` writes.
    ///
    /// `appendedAt` is the moment of the evaluation if the source gave none.
    func decode(_ text: String, appendedAt: Timestamp, into decoded: DecodedChange) -> Bool {
        decoded.removeAll()
        decoded.catalogVersion = catalog.version
        decoded.hold(text)
        decoded.isPartial = true
        decoded.isSnapshot = false
        decoded.namesReaders = false
        let isRead = text.utf8.withContiguousStorageIfAvailable { bytes in
            guard bytes.count > 1 else { return false }
            var cursor = JSONCursor(bytes)
            var head = Head()
            guard members(&cursor, &head, decoded), let operation = head.operation,
                head.hasType
            else { return false }
            decoded.operation = operation
            decoded.now = head.occurredAt ?? appendedAt
            if catalog.readsSystemFields(head.plan) {
                return decodeWhole(text, now: decoded.now, into: decoded)
            }
            if let plan = head.plan {
                fill(plan, decoded)
                if !catalog.plans[plan].derived.isEmpty {
                    SlotDerivation(plan: catalog.plans[plan]).derive(decoded)
                }
            }
            ChangeDecoder(catalog: catalog, seed: seed).probes(
                head.database, head.owner, head.zoneID, head.plan, decoded)
            return true
        }
        return isRead ?? false
    }

    /// Decodes a change completely.
    ///
    /// This is needed if a predicate on the record type reads system fields, which follow from the
    /// change as a whole.
    private func decodeWhole(
        _ text: String, now: Timestamp?, into decoded: DecodedChange
    ) -> Bool {
        guard let json = try? JSONValue(stored: text),
            let change = try? RecordChange(storedForm: json)
        else { return false }
        let (isSnapshot, namesReaders) = (decoded.isSnapshot, decoded.namesReaders)
        ChangeDecoder(catalog: catalog, seed: seed).decode(change, now: now, into: decoded)
        (decoded.isSnapshot, decoded.namesReaders) = (isSnapshot, namesReaders)
        return true
    }

    private func members(
        _ cursor: inout JSONCursor, _ head: inout Head, _ decoded: DecodedChange
    ) -> Bool {
        guard cursor.take(UInt8(ascii: "{")) else { return false }
        repeat {
            guard let name = cursor.string(), cursor.take(UInt8(ascii: ":")),
                member(name, &cursor, &head, decoded)
            else { return false }
        } while cursor.take(UInt8(ascii: ","))
        return cursor.take(UInt8(ascii: "}")) && cursor.index == cursor.count
    }

    private func member(
        _ name: JSONCursor.Text, _ cursor: inout JSONCursor, _ head: inout Head,
        _ decoded: DecodedChange
    ) -> Bool {
        switch cursor.head(name.start, name.length) {
        case Names.op: return operation(&cursor, &head)
        case Names.type: return recordType(&cursor, &head, decoded)
        case Names.db: return database(&cursor, &head)
        case Names.owner:
            head.owner = text(&cursor).flatMap(UserID.init(rawValue:))
            return head.owner != nil
        case Names.zone: return zone(&cursor, &head)
        case Names.before, Names.after:
            guard let operation = head.operation, head.hasType else { return false }
            let isBefore = cursor.base[name.start] == UInt8(ascii: "b")
            guard isBefore == (operation == .delete) else { return cursor.skipValue() }
            // The plan of all record types has no paths, but the image is still read as full or
            // partial.
            return image(&cursor, head.plan ?? 0, decoded)
        case Names.at:
            guard case .timestamp(let moment)? = value(&cursor) else { return false }
            head.occurredAt = moment
            return true
        case Names.snapshot:
            decoded.isSnapshot = cursor.current == UInt8(ascii: "t")
            return cursor.skipValue()
        case Names.readers:
            let start = cursor.index
            guard cursor.skipValue() else { return false }
            decoded.namesReaders = !Self.everybody.withUnsafeBufferPointer { needle in
                needle.baseAddress.map {
                    BytesSearch.isFound(
                        $0, needle.count, in: cursor.base + start, cursor.index - start)
                } ?? false
            }
            return true
        default: return cursor.skipValue()
        }
    }

    /// The name that means everybody, as a list of readers has it.
    private static let everybody = Array(#""\#(RecordChange.everybody)""#.utf8)

    /// The first eight bytes of the names that ``RelayModel/RecordChange/storedForm`` writes, the
    /// first byte lowest.
    ///
    /// They are written as numbers, because every access to a computed static checks whether it is
    /// initialised. A test compares them with the names in the golden file.
    enum Names {
        @inline(__always) static var op: UInt64 { 0x706F }
        @inline(__always) static var type: UInt64 { 0x6570_7974 }
        @inline(__always) static var db: UInt64 { 0x6264 }
        @inline(__always) static var zone: UInt64 { 0x656E_6F7A }
        @inline(__always) static var owner: UInt64 { 0x72_656E_776F }
        @inline(__always) static var before: UInt64 { 0x6572_6F66_6562 }
        @inline(__always) static var after: UInt64 { 0x72_6574_6661 }
        @inline(__always) static var at: UInt64 { 0x7461 }
        @inline(__always) static var snapshot: UInt64 { 0x746F_6873_7061_6E73 }
        @inline(__always) static var readers: UInt64 { 0x73_7265_6461_6572 }
    }

    private func operation(_ cursor: inout JSONCursor, _ head: inout Head) -> Bool {
        guard let text = cursor.string(), text.length > 0 else { return false }
        switch cursor.base[text.start] {
        case UInt8(ascii: "c"): head.operation = .create
        case UInt8(ascii: "u"): head.operation = .update
        case UInt8(ascii: "d"): head.operation = .delete
        default: return false
        }
        return true
    }

    private func recordType(
        _ cursor: inout JSONCursor, _ head: inout Head, _ decoded: DecodedChange
    ) -> Bool {
        guard let name = cursor.string() else { return false }
        head.hasType = true
        let start = cursor.base + name.start
        if name.isPlain,
            let known = decoded.knownPlan(start, name.length, version: catalog.version)
        {
            head.plan = known
            return true
        }
        guard let text = text(name, cursor), let recordType = RecordType(rawValue: text) else {
            return false
        }
        head.plan = catalog.plan(of: recordType)
        if name.isPlain {
            decoded.knowPlan(head.plan, start, name.length, version: catalog.version)
        }
        return true
    }

    private func database(_ cursor: inout JSONCursor, _ head: inout Head) -> Bool {
        if cursor.take("\"public\"") {
            head.database = .public
            return true
        }
        guard let text = text(&cursor), let scope = DatabaseScope(rawValue: text) else {
            return false
        }
        head.database = scope
        return true
    }

    private func zone(_ cursor: inout JSONCursor, _ head: inout Head) -> Bool {
        let start = cursor.index
        guard cursor.skipValue() else { return false }
        // The zone matters only if some subscription is limited to a compartment.
        guard catalog.hasCompartments else { return true }
        guard let json = json(cursor, from: start),
            let zoneID = try? ZoneID(json: json, path: "zone")
        else { return false }
        head.zoneID = zoneID
        return true
    }

    // MARK: Images

    /// Sets all slots without a value to absent.
    private func fill(_ plan: Int, _ decoded: DecodedChange) {
        let count = catalog.plans[plan].paths.count
        let absent = FieldSlot(decoded.isPartial ? .unknown : .null)
        while decoded.slots.count < count { decoded.slots.append(absent) }
    }

    private func image(
        _ cursor: inout JSONCursor, _ plan: Int, _ decoded: DecodedChange
    ) -> Bool {
        guard cursor.take(UInt8(ascii: "{")), let name = cursor.string(),
            cursor.take(UInt8(ascii: ":")), name.length > 0
        else { return false }
        decoded.isPartial = cursor.base[name.start] == UInt8(ascii: "p")
        fill(plan, decoded)
        return fields(&cursor, plan, decoded) && cursor.take(UInt8(ascii: "}"))
    }

    private func fields(
        _ cursor: inout JSONCursor, _ plan: Int, _ decoded: DecodedChange
    ) -> Bool {
        guard cursor.take(UInt8(ascii: "{")) else { return false }
        if cursor.take(UInt8(ascii: "}")) { return true }
        let names = decoded.names(of: plan, in: catalog)
        repeat {
            guard let name = cursor.string(), cursor.take(UInt8(ascii: ":")) else { return false }
            if let path = path(of: name, names, plan, cursor) {
                guard let slot = slot(&cursor, decoded) else { return false }
                decoded.slots[path] = slot
            } else if !cursor.skipValue() {
                return false
            }
        } while cursor.take(UInt8(ascii: ","))
        return cursor.take(UInt8(ascii: "}"))
    }

    @inline(__always)
    private func path(
        of name: JSONCursor.Text, _ names: FieldNames, _ plan: Int, _ cursor: JSONCursor
    ) -> Int? {
        if name.isPlain, name.length > 0 { return names.path(name, in: cursor) }
        guard let text = text(name, cursor) else { return nil }
        return catalog.plans[plan].path(of: text)
    }

    // MARK: Values

    private func slot(_ cursor: inout JSONCursor, _ decoded: DecodedChange) -> FieldSlot? {
        guard cursor.current == UInt8(ascii: "[") else { return scalar(&cursor, decoded) }
        cursor.index += 1
        var slot = FieldSlot(.collection)
        let start = decoded.encoder.elements.count
        slot.offset = UInt32(start)
        if cursor.take(UInt8(ascii: "]")) { return slot }
        repeat {
            guard let element = element(&cursor, decoded) else { return nil }
            decoded.encoder.elements.append(element)
            if element.isDeep { slot.form.insert(.deep) }
        } while cursor.take(UInt8(ascii: ","))
        slot.length = UInt32(decoded.encoder.elements.count - start)
        return cursor.take(UInt8(ascii: "]")) ? slot : nil
    }

    /// Reads an element of a list; a collection inside a collection equals no scalar.
    private func element(_ cursor: inout JSONCursor, _ decoded: DecodedChange) -> FieldSlot? {
        if cursor.current == UInt8(ascii: "[") {
            return cursor.skipValue() ? FieldSlot(.notANumber) : nil
        }
        guard cursor.current == UInt8(ascii: "{") else { return scalar(&cursor, decoded) }
        switch value(&cursor) {
        case nil: return nil
        case .list?, .set?, .map?: return FieldSlot(.notANumber)
        case let scalar?: return decoded.encoder.encode(scalar)
        }
    }

    private func scalar(_ cursor: inout JSONCursor, _ decoded: DecodedChange) -> FieldSlot? {
        switch cursor.current {
        case UInt8(ascii: "\""): return string(&cursor, decoded)
        case UInt8(ascii: "n"): return cursor.take("null") ? FieldSlot(.null) : nil
        case UInt8(ascii: "t"):
            return cursor.take("true") ? decoded.encoder.number(true) : nil
        case UInt8(ascii: "f"):
            return cursor.take("false") ? decoded.encoder.number(false) : nil
        case UInt8(ascii: "{"): return value(&cursor).map { decoded.encoder.encode($0) }
        default: break
        }
        switch cursor.number() {
        case .integer(let number)?: return decoded.encoder.number(OrderedNumber(number))
        case .double(let number)?:
            return OrderedNumber(number).map { decoded.encoder.number($0) }
        case nil: return value(&cursor).map { decoded.encoder.encode($0) }
        }
    }

    private func string(_ cursor: inout JSONCursor, _ decoded: DecodedChange) -> FieldSlot? {
        guard let text = cursor.string() else { return nil }
        let content = UnsafeBufferPointer(start: cursor.base + text.start, count: text.length)
        guard text.isPlain || !text.hasEscapes && ValueEncoder.isNormalized(content) else {
            return self.text(text, cursor).map { decoded.encoder.string($0) }
        }
        let start = decoded.encoder.bytes.count
        decoded.encoder.bytes.append(from: cursor.base + text.start, count: text.length)
        return decoded.encoder.string(from: start)
    }

    /// Reads the next value with the common parser; dates are frequent enough for a faster way.
    private func value(_ cursor: inout JSONCursor) -> FieldValue? {
        let start = cursor.index
        if let moment = moment(&cursor) { return .timestamp(moment) }
        cursor.index = start
        guard cursor.skipValue(), let json = json(cursor, from: start) else { return nil }
        return try? FieldValue(notation: json)
    }

    private func moment(_ cursor: inout JSONCursor) -> Timestamp? {
        guard cursor.take("{\"$ts\":["), case .integer(let seconds)? = cursor.number(),
            cursor.take(UInt8(ascii: ",")), case .integer(let nanoseconds)? = cursor.number(),
            cursor.take("]}"), (0..<1_000_000_000).contains(nanoseconds)
        else { return nil }
        return Timestamp(seconds: seconds, nanoseconds: Int32(nanoseconds))
    }

    // MARK: What is rare

    private func text(_ cursor: inout JSONCursor) -> String? {
        cursor.string().flatMap { text($0, cursor) }
    }

    private func text(_ text: JSONCursor.Text, _ cursor: JSONCursor) -> String? {
        let content = UnsafeBufferPointer(start: cursor.base + text.start, count: text.length)
        guard text.hasEscapes else { return String(utf8: content) }
        let quoted = [UInt8(ascii: "\"")] + content + [UInt8(ascii: "\"")]
        guard case .string(let read)? = try? JSONValue(stored: quoted) else { return nil }
        return read
    }

    private func json(_ cursor: JSONCursor, from start: Int) -> JSONValue? {
        let content = UnsafeBufferPointer(start: cursor.base + start, count: cursor.index - start)
        return try? JSONValue(stored: Array(content))
    }
}
