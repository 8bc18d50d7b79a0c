import PredicateLanguage
import RelayModel

typealias TextOptions = RecordPredicate.TextOptions

/// The form in which comparisons under another dialect's rules see a value.
///
/// Under these rules a value is a bag of scalars, any one of which may satisfy a comparison: a list
/// stands for its elements, a scalar for itself. The views differ in the contents of the bag and in
/// the equality of scalars. In all of them, texts are bytes, and booleans are not numbers.
enum ValueView: UInt8, Codable {
    /// Realm's rules: a dictionary stands for its members, also inside a list.
    case realm
    /// Realm's rules with case ignored.
    case realmFolded
    /// Minapp's rules: nested lists are flattened, a text may be a date as well, a reference is the
    /// name of its record, and UUIDs and object IDs are their texts.
    case minapp
    /// Realm's rules for GEOWITHIN: the bag has locations; a value may be one, or a list of them.
    case realmPlaces
}

/// Further properties of a slot.
struct SlotForm: OptionSet, BitwiseCopyable {
    let rawValue: UInt8

    /// A number that is a boolean.
    static let boolean = SlotForm(rawValue: 1)
    /// A text that was not in normal form C, so its original bytes are not here.
    static let altered = SlotForm(rawValue: 2)
    /// A collection that is more than an ordered list of scalars whose bytes are here.
    static let deep = SlotForm(rawValue: 4)
    /// The bag of a view.
    static let bag = SlotForm(rawValue: 8)
    /// A bag of one dictionary.
    static let map = SlotForm(rawValue: 16)
    /// A bag of a list that contains dictionaries.
    static let holdsMaps = SlotForm(rawValue: 32)
    /// In a bag, an element from inside a dictionary.
    static let inner = SlotForm(rawValue: 64)
    /// In a bag, the record that a dictionary stands for; it is used for look-ups only.
    static let link = SlotForm(rawValue: 128)
}

extension ValueEncoder {
    /// Encodes a value for a view.
    mutating func encode(_ value: FieldValue, in view: ValueView) -> FieldSlot {
        if view == .realmPlaces { return places(of: value) }
        switch value {
        case .list, .set: return bag(of: value, in: view)
        case .map where view != .minapp: return bag(of: value, in: view)
        case .string(let text) where view == .minapp && Self.mayBeMoment(text.utf8):
            return bag(of: value, in: view)
        default: return scalar(value, in: view)
        }
    }

    /// Encodes a constant that values in a view are compared with.
    ///
    /// Data equals a text with the same bytes, so constants of both kinds are encoded as texts.
    mutating func constant(_ value: FieldValue, in view: ValueView) -> FieldSlot {
        guard case .bytes(let content) = value, view != .realmFolded else {
            return scalar(value, in: view)
        }
        return pattern(content)
    }

    // MARK: From what is encoded already

    /// Returns the slot of an encoded value in a view; `nil` if its canonical bytes are not
    /// sufficient.
    mutating func viewed(_ slot: FieldSlot, in view: ValueView) -> FieldSlot? {
        if view == .realmPlaces { return viewedPlace(slot) }
        guard slot.kind == .collection else { return viewedScalar(slot, in: view) }
        if slot.form.contains(.deep) { return nil }
        elements.reserve(Int(slot.length))
        let start = elements.count
        for index in 0..<Int(slot.length) {
            guard let element = viewedScalar(elements[Int(slot.offset) + index], in: view) else {
                elements.count = start
                return nil
            }
            elements.append(element)
        }
        return bag(from: start, .bag)
    }

    /// Coordinates and points in collections are recognised from the original value only.
    private func viewedPlace(_ slot: FieldSlot) -> FieldSlot? {
        switch slot.kind {
        case .location, .null, .unknown: slot
        case .collection: nil
        default: FieldSlot(.notANumber)
        }
    }

    private mutating func viewedScalar(_ slot: FieldSlot, in view: ValueView) -> FieldSlot? {
        switch slot.kind {
        case .null, .unknown, .notANumber, .date, .location: return slot
        case .uuid, .objectID: return view == .minapp ? nil : slot
        case .number:
            return slot.form.contains(.boolean)
                ? boolean(slot.order == OrderedNumber.order(of: 1)) : slot
        case .string:
            if slot.form.contains(.altered) { return nil }
            let content = UnsafeBufferPointer(
                start: bytes.base + Int(slot.offset), count: Int(slot.length))
            switch view {
            case .realm: return slot
            case .realmFolded:
                return content.allSatisfy { $0 < 0x80 } ? folded(slot, .ignoringCase) : nil
            case .minapp: return Self.mayBeMoment(content) ? nil : slot
            case .realmPlaces: return nil
            }
        case .bytes, .reference, .boolean, .collection: return nil
        }
    }

    // MARK: Bags

    private func bag(from start: Int, _ form: SlotForm) -> FieldSlot {
        var slot = FieldSlot(.collection)
        slot.offset = UInt32(start)
        slot.length = UInt32(elements.count - start)
        slot.form = form
        return slot
    }

    private mutating func places(of value: FieldValue) -> FieldSlot {
        let places = value.realmPlaces
        // Each location is looked up at every level in use.
        guard admits(slow: places.count * 8) else { return FieldSlot(.unknown) }
        let start = elements.count
        for place in places {
            let slot = encode(.location(place))
            elements.append(slot)
        }
        return bag(from: start, .bag)
    }

    private mutating func bag(of value: FieldValue, in view: ValueView) -> FieldSlot {
        let start = elements.count
        var form = SlotForm.bag
        if view == .minapp {
            addOpened(value)
        } else {
            switch value {
            case .list(let values): for value in values { add(value, in: view, &form) }
            case .set(let values):
                for value in FieldValue.realmElements(of: values) { add(value, in: view, &form) }
            case .map(let members):
                form.insert(.map)
                add(members, in: view)
            default: add(value, in: view, &form)
            }
        }
        return bag(from: start, form)
    }

    /// Adds an element of a list by Realm's rules.
    private mutating func add(_ value: FieldValue, in view: ValueView, _ form: inout SlotForm) {
        guard case .map(let members) = value else {
            let slot = scalar(value, in: view)
            elements.append(slot)
            return
        }
        form.insert(.holdsMaps)
        add(members, in: view)
    }

    private mutating func add(_ members: RecordFields, in view: ValueView) {
        for value in members.values {
            var slot = scalar(value, in: view)
            slot.form.insert(.inner)
            elements.append(slot)
        }
        guard let name = FieldValue.linkName(members) else { return }
        var slot = raw(name)
        slot.kind = .reference
        slot.form = [.inner, .link]
        elements.append(slot)
    }

    /// Adds a value by Minapp's rules, which also flatten nested lists.
    private mutating func addOpened(_ value: FieldValue) {
        switch value {
        case .list(let values): for value in values { addOpened(value) }
        case .set(let values): for value in values { addOpened(value) }
        default:
            let slot = scalar(value, in: .minapp)
            elements.append(slot)
            guard case .string(let text) = value else { return }
            if Self.mayBeMoment(text.utf8), !admits(slow: text.utf8.count / 2) { return }
            guard let moment = IndexedText.moment(of: text) else { return }
            let date = encode(.timestamp(moment))
            elements.append(date)
        }
    }

    // MARK: Scalars

    private mutating func scalar(_ value: FieldValue, in view: ValueView) -> FieldSlot {
        switch value {
        case .bool(let flag): return boolean(flag)
        case .string(let text):
            guard view == .realmFolded else { return raw(text) }
            guard admits(slow: text.utf8.count / 2) else { return FieldSlot(.unknown) }
            return raw(IndexedText.realmText(value, ignoringCase: true))
        case .bytes(let content): return data(content, in: view)
        case .reference(let reference):
            var slot = raw(reference.recordID.recordName.rawValue)
            if view != .minapp { slot.kind = .reference }
            return slot
        case .uuid(let uuid) where view == .minapp: return raw(uuid.description)
        case .objectID(let content) where view == .minapp:
            return raw(Hexadecimal.encode(content))
        // A collection inside a collection equals no scalar.
        case .list, .set, .map: return FieldSlot(.notANumber)
        default: return encode(value)
        }
    }

    private mutating func boolean(_ flag: Bool) -> FieldSlot {
        var slot = FieldSlot(.boolean)
        slot.offset = UInt32(bytes.count)
        slot.length = 1
        bytes.append(flag ? 1 : 0)
        return slot
    }

    /// Encodes a text without normalising it.
    mutating func raw(_ text: String) -> FieldSlot {
        let start = bytes.count
        append(text.utf8)
        return string(from: start)
    }

    /// Encodes data.
    ///
    /// It equals texts byte by byte, but searches treat its bytes as code points, so that text is
    /// stored after the bytes.
    private mutating func data(_ content: [UInt8], in view: ValueView) -> FieldSlot {
        guard view != .realmFolded else {
            return raw(IndexedText.realmText(.bytes(content), ignoringCase: true))
        }
        var slot = pattern(content)
        slot.kind = .bytes
        let text = raw(IndexedText.realmText(.bytes(content), ignoringCase: false))
        slot.order = Int64(text.offset) << 32 | Int64(text.length)
        return slot
    }

    /// Appends the part of a scalar that distinguishes it in a sequence of scalars.
    mutating func append(member slot: FieldSlot) {
        let kind: ValueClass = slot.kind == .bytes ? .string : slot.kind
        bytes.append(kind.rawValue)
        KeyBytes.append(slot.length, to: &bytes)
        let length = Int(slot.length)
        // The source is in the same memory, which must not move during the append.
        bytes.reserve(length)
        bytes.append(from: bytes.base + Int(slot.offset), count: length)
    }

    /// Returns whether a text has the outline of a date; few other texts do.
    private static func mayBeMoment(_ text: some Collection<UInt8>) -> Bool {
        guard let first = text.first, first &- 0x30 < 10, (20...40).contains(text.count) else {
            return false
        }
        return text.dropFirst(4).first == UInt8(ascii: "-")
    }
}

extension FieldSlot {
    /// The slot of the text in which searches look; for data in a view it differs from the data.
    var searched: FieldSlot {
        guard kind == .bytes else { return self }
        var slot = FieldSlot(.string)
        slot.offset = UInt32(truncatingIfNeeded: order >> 32)
        slot.length = UInt32(truncatingIfNeeded: order)
        return slot
    }
}
