import RelayModel

/// Records by serial in a ``RecordHeap``, each with a template that it shares with others.
///
/// A record begins with its serial, in eight bytes; what follows is known to whoever writes it.
struct PackedRecords<Template: Hashable & Sendable>: Sendable {
    private(set) var heap = RecordHeap()
    private(set) var places: [UInt64: Int] = [:]
    private(set) var templates: TemplateTable<Template>
    /// Where a record has the number of its template.
    private let templateOffset: Int

    /// Begins without records.
    init(templates: TemplateTable<Template>, templateOffset: Int) {
        self.templates = templates
        self.templateOffset = templateOffset
    }

    /// How many there are.
    var count: Int { places.count }

    /// Adds a record, whose serial must not be known, and says where it is.
    mutating func append(_ record: borrowing ImageWriter, serial: UInt64) -> Int {
        let place = heap.append(record)
        places[serial] = place
        return place
    }

    /// Takes a record out.
    ///
    /// - Returns: Whether the others moved.
    mutating func remove(_ serial: UInt64) -> Bool {
        guard let place = places.removeValue(forKey: serial) else { return false }
        templates.release(heap.word(templateOffset, of: place))
        heap.remove(at: place)
        guard heap.isSparse else { return false }
        heap.pack()
        places.removeAll(keepingCapacity: true)
        heap.forEach { place, _ in places[heap.word(0, of: place)] = place }
        return true
    }

    /// The number of a template, for a record that is about to be added.
    mutating func number(of template: Template) -> UInt32 { templates.number(of: template) }

    /// The template of the record at `place`; `nil` if it cannot be read.
    mutating func template(at place: Int) -> Template? {
        templates.value(heap.word(templateOffset, of: place))
    }

    /// Overwrites the word at `offset` of the record at `place`.
    mutating func set(_ word: UInt64, _ offset: Int, of place: Int) {
        heap.set(UInt32(truncatingIfNeeded: word), offset, of: place)
        heap.set(UInt32(truncatingIfNeeded: word >> 32), offset + 4, of: place)
    }

    /// The text of `count` bytes at `offset` of the record at `place`.
    func text(_ offset: Int, _ count: Int, of place: Int) -> String {
        heap.text(offset, count, of: place)
    }

    // MARK: Snapshots

    /// The records as bytes, with numbers of the owner's beside how many there are.
    func image(_ numbers: [Int] = []) -> [UInt8] {
        var image = ImageWriter()
        image.reserve(heap.bytes.count + 1024)
        templates.write(to: &image)
        for number in [places.count] + numbers { image.append(UInt64(number)) }
        image.append(bytes: heap.bytes)
        return image.bytes
    }

    /// Fills what is empty from a snapshot, if `isWhole` says yes to the place and the length of
    /// each record.
    ///
    /// - Returns: The owner's numbers, none of them more than there are records.
    /// - Throws: `ImageDamage` if the bytes are not those of ``image(_:)``.
    mutating func load(
        _ bytes: [UInt8], numbers: Int = 0, of things: String,
        isWhole: (_ heap: RecordHeap, _ place: Int, _ length: Int) -> Bool
    ) throws -> [Int] {
        var image = ImageReader(bytes)
        try templates.load(&image)
        let count = try image.count(0...Int(Int32.max))
        let numbers = try (0..<numbers).map { _ in try image.count(0...count) }
        heap = try RecordHeap(image: try image.run())
        places.reserveCapacity(count)
        var isSound = image.isAtEnd
        heap.forEach { place, length in
            guard length >= templateOffset + 4, isWhole(heap, place, length),
                templates.isInUse(heap.word(templateOffset, of: place))
            else { return isSound = false }
            places[heap.word(0, of: place)] = place
        }
        guard isSound, places.count == count else {
            throw ImageDamage("the \(things) do not fit together")
        }
        return numbers
    }
}
