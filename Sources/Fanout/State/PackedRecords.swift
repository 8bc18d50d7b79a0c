import RelayModel

/// Records by serial in a ``RecordHeap``, each with a template that it shares with others.
///
/// A record begins with its serial, in eight bytes. The owner of the records knows the format of
/// the rest.
struct PackedRecords<Template: Hashable & Sendable>: Sendable {
    private(set) var heap = RecordHeap()
    private(set) var places: [UInt64: Int] = [:]
    private(set) var templates: TemplateTable<Template>
    /// The offset of the template's number in a record.
    private let templateOffset: Int

    /// Creates an empty collection of records.
    init(templates: TemplateTable<Template>, templateOffset: Int) {
        self.templates = templates
        self.templateOffset = templateOffset
    }

    /// The number of records.
    var count: Int { places.count }

    /// Adds a record, whose serial must be new, and returns its place.
    mutating func append(_ record: borrowing ImageWriter, serial: UInt64) -> Int {
        let place = heap.append(record)
        places[serial] = place
        return place
    }

    /// Removes a record.
    ///
    /// - Returns: Whether the other records moved.
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

    /// Returns the number of a template, for a record that is about to be added.
    mutating func number(of template: Template) -> UInt32 { templates.number(of: template) }

    /// Returns the template of the record at `place`, or `nil` if it cannot be read.
    mutating func template(at place: Int) -> Template? {
        templates.value(heap.word(templateOffset, of: place))
    }

    /// Overwrites the word at `offset` of the record at `place`.
    mutating func set(_ word: UInt64, _ offset: Int, of place: Int) {
        heap.set(UInt32(truncatingIfNeeded: word), offset, of: place)
        heap.set(UInt32(truncatingIfNeeded: word >> 32), offset + 4, of: place)
    }

    /// Returns the text of `count` bytes at `offset` of the record at `place`.
    func text(_ offset: Int, _ count: Int, of place: Int) -> String {
        heap.text(offset, count, of: place)
    }

    // MARK: Snapshots

    /// Returns the records as bytes.
    ///
    /// `numbers` are numbers of the owner, which follow the number of records.
    func image(_ numbers: [Int] = []) -> [UInt8] {
        var image = ImageWriter()
        image.reserve(heap.bytes.count + 1024)
        templates.write(to: &image)
        for number in [places.count] + numbers { image.append(UInt64(number)) }
        image.append(bytes: heap.bytes)
        return image.bytes
    }

    /// Fills an empty collection from a snapshot.
    ///
    /// `isWhole` checks the place and the length of each record.
    ///
    /// - Returns: The owner's numbers, none of which exceeds the number of records.
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
            throw ImageDamage("the parts of the \(things) do not match")
        }
        return numbers
    }
}
