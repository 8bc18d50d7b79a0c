import Foundation
import RelayModel

/// What a key says about a change.
enum KeyKind: UInt8, Codable {
    /// The field has this value.
    case equal
    /// The field is a collection with this element.
    case element
    /// The field is a text; nothing is said about which.
    case text
    /// The field's text begins so.
    case prefix
    /// The field's number or date lies in this cell.
    case cell
    /// The field is a number or date; its bounds are too wide for cells.
    case open
    /// Nothing but the record type is asked.
    case every
}

/// What one key is about, apart from its bytes; interned to a number.
struct KeyDimension: Hashable, Codable {
    var shelf: UInt32
    var kind: KeyKind
    var path: UInt16 = 0
    var valueClass: ValueClass = .null
    /// Whether the bytes begin with the number of a compartment.
    var isCompartmented: Bool
}

/// A part of a container that keys are confined to: a database, where it is private a user's, and
/// possibly one zone of it.
struct Compartment: Hashable {
    var database: DatabaseScope
    var owner: UserID?
    var zoneID: ZoneID?

    /// The commonest, which costs no bytes in a key: the public database, whichever zone.
    var isCommon: Bool { database == .public && owner == nil && zoneID == nil }
}

/// The keys that changes of one record type are looked up by: what saved predicates ask for, and
/// nothing else.
struct PathUse: Codable {
    /// The field of the record.
    var field: String
    /// For each value class, the number of the dimension of equality plus 1, 0 where unused.
    var equal = ClassNumbers()
    /// The same for elements of collections.
    var element = ClassNumbers()
    /// The same for cells; numbers and dates only.
    var cell = ClassNumbers()
    /// The same for open intervals.
    var open = ClassNumbers()
    /// The dimension of texts of any content, plus 1.
    var text: UInt32 = 0
    /// The dimension of prefixes, plus 1.
    var prefix: UInt32 = 0
    /// The prefix lengths in use, as bits.
    var prefixLengths: UInt64 = 0
    /// The cell levels in use, as bits, for numbers and for dates.
    var numberLevels: UInt64 = 0
    var dateLevels: UInt64 = 0
}

/// A number for each class that can be a key.
struct ClassNumbers: Codable {
    private var numbers: InlineArray<9, UInt32> = .init(repeating: 0)

    @inline(__always)
    subscript(kind: ValueClass) -> UInt32 {
        get { kind.isScalar ? numbers[Int(kind.rawValue)] : 0 }
        set { numbers[Int(kind.rawValue)] = newValue }
    }

    init() {}

    init(from decoder: any Decoder) throws {
        for (index, number) in try [UInt32](from: decoder).enumerated()
        where index < numbers.count {
            numbers[index] = number
        }
    }

    func encode(to encoder: any Encoder) throws {
        try numbers.indices.map { numbers[$0] }.encode(to: encoder)
    }
}

/// The plan of one record type: which paths are decoded, and by which keys they are looked up.
///
/// There are two plans of a record type, one for the public database and one for compartments,
/// because their keys differ; both number their paths alike.
struct Shelf: Codable {
    /// The record type; `nil` for subscriptions to all.
    let recordType: RecordType?
    /// The paths that rows or keys name, by number.
    var paths: [PathUse] = []
    /// The same for the keys in compartments.
    var compartmentPaths: [PathUse] = []
    /// The paths by their fields.
    var fieldNumbers: [String: Int] = [:]
    /// The dimension of ``KeyKind/every``, plus 1.
    var every: UInt32 = 0
    var compartmentEvery: UInt32 = 0

    init(recordType: RecordType?) {
        self.recordType = recordType
    }

    /// The number of a field, if some predicate names it.
    @inline(__always)
    func path(of field: String) -> Int? {
        // A few short names are found faster by looking at each than by hashing.
        for number in 0..<min(paths.count, 12) where paths[number].field == field { return number }
        return paths.count <= 12 ? nil : fieldNumbers[field]
    }

    mutating func addPath(_ field: String) -> Int {
        fieldNumbers[field] = paths.count
        paths.append(PathUse(field: field))
        compartmentPaths.append(PathUse(field: field))
        return paths.count - 1
    }
}

/// Everything that has been given a number: record types, dimensions, compartments.
///
/// Numbers are never taken back; ``version`` tells a decoded change that it is out of date.
struct Catalog {
    /// Raised whenever a change would be decoded differently.
    private(set) var version: UInt64 = 0
    private(set) var shelves: [Shelf] = [Shelf(recordType: nil)]
    private var shelfNumbers: [RecordType: Int] = [:]
    /// The shelf that was asked for last: the same record type comes many times in a row.
    private var lastShelf = 0
    private(set) var dimensions: [KeyDimension] = []
    private var dimensionNumbers: [KeyDimension: UInt32] = [:]
    private var compartments: [Compartment: UInt32] = [:]

    /// The number of a record type's shelf; 0 is the shelf of subscriptions to all.
    func shelf(of recordType: RecordType) -> Int? { shelfNumbers[recordType] }

    /// Whether any subscription is confined to a part of the container.
    var hasCompartments: Bool { !compartments.isEmpty }

    /// The number of a compartment that some subscription is confined to.
    func compartment(_ compartment: Compartment) -> UInt32? { compartments[compartment] }

    /// The number of a record type's shelf, given out when first asked for.
    mutating func makeShelf(_ recordType: RecordType?) -> Int {
        guard let recordType else { return 0 }
        if shelves[lastShelf].recordType == recordType { return lastShelf }
        if let known = shelfNumbers[recordType] {
            lastShelf = known
            return known
        }
        shelfNumbers[recordType] = shelves.count
        shelves.append(Shelf(recordType: recordType))
        version += 1
        return shelves.count - 1
    }

    /// The number of a compartment, from 1, given out when first asked for; 0 is the common one.
    mutating func makeCompartment(_ compartment: Compartment) -> UInt32 {
        if compartment.isCommon { return 0 }
        if let known = compartments[compartment] { return known }
        let number = UInt32(compartments.count + 1)
        compartments[compartment] = number
        version += 1
        return number
    }

    /// Fields of one record type that predicates may name and still be filed under keys; the time
    /// to
    /// decode a change grows with them.
    static let mostPaths = 1000

    /// Whether a record type's predicates name too many fields already.
    func isCrowded(_ shelf: Int) -> Bool { shelves[shelf].paths.count >= Self.mostPaths }

    /// The number of a field, given out when first asked for.
    mutating func makePath(_ field: String, shelf: Int) -> Int {
        if let known = shelves[shelf].path(of: field) { return known }
        version += 1
        return shelves[shelf].addPath(field)
    }

    /// The number of a dimension, given out and entered on its shelf when first asked for.
    mutating func makeDimension(_ dimension: KeyDimension) -> UInt32 {
        if let known = known(dimension) { return known - 1 }
        let number = UInt32(dimensions.count)
        dimensions.append(dimension)
        dimensionNumbers[dimension] = number
        version += 1
        let shelf = Int(dimension.shelf)
        if dimension.kind == .every {
            if dimension.isCompartmented {
                shelves[shelf].compartmentEvery = number + 1
            } else {
                shelves[shelf].every = number + 1
            }
        } else {
            withUse(of: dimension) { $0.enter(dimension, number: number) }
        }
        return number
    }

    private func known(_ dimension: KeyDimension) -> UInt32? {
        if dimension.kind == .every {
            return dimensionNumbers[dimension].map { $0 + 1 }
        }
        let shelf = Int(dimension.shelf)
        let path = Int(dimension.path)
        let number =
            dimension.isCompartmented
            ? shelves[shelf].compartmentPaths[path].number(of: dimension)
            : shelves[shelf].paths[path].number(of: dimension)
        return number == 0 ? nil : number
    }

    /// Notes that prefixes of `length` bytes must be looked up.
    mutating func usePrefix(length: Int, _ dimension: KeyDimension) {
        let bit: UInt64 = 1 << UInt64(length)
        let isNew = withUse(of: dimension) { use in
            defer { use.prefixLengths |= bit }
            return use.prefixLengths & bit == 0
        }
        if isNew { version += 1 }
    }

    /// Notes that cells of `level` must be looked up.
    mutating func useCell(level: Int, _ dimension: KeyDimension) {
        let bit: UInt64 = 1 << UInt64(level)
        let isNew = withUse(of: dimension) { use in
            if dimension.valueClass == .date {
                defer { use.dateLevels |= bit }
                return use.dateLevels & bit == 0
            }
            defer { use.numberLevels |= bit }
            return use.numberLevels & bit == 0
        }
        if isNew { version += 1 }
    }

    @discardableResult
    private mutating func withUse<Result>(
        of dimension: KeyDimension, _ body: (inout PathUse) -> Result
    ) -> Result {
        let shelf = Int(dimension.shelf)
        let path = Int(dimension.path)
        if dimension.isCompartmented { return body(&shelves[shelf].compartmentPaths[path]) }
        return body(&shelves[shelf].paths[path])
    }
}

extension PathUse {
    /// The number of a dimension plus 1, or 0.
    func number(of dimension: KeyDimension) -> UInt32 {
        switch dimension.kind {
        case .equal: equal[dimension.valueClass]
        case .element: element[dimension.valueClass]
        case .cell: cell[dimension.valueClass]
        case .open: open[dimension.valueClass]
        case .text: text
        case .prefix: prefix
        case .every: 0
        }
    }

    mutating func enter(_ dimension: KeyDimension, number: UInt32) {
        switch dimension.kind {
        case .equal: equal[dimension.valueClass] = number + 1
        case .element: element[dimension.valueClass] = number + 1
        case .cell: cell[dimension.valueClass] = number + 1
        case .open: open[dimension.valueClass] = number + 1
        case .text: text = number + 1
        case .prefix: prefix = number + 1
        case .every: break
        }
    }
}

// MARK: - Snapshots

extension Catalog {
    private struct Form: Codable {
        var version: UInt64
        var shelves: [Shelf]
        var dimensions: [KeyDimension]
    }

    /// Appends the catalog to an image.
    ///
    /// - Throws: What the encoder throws.
    func write(to image: inout ImageWriter) throws {
        let form = Form(version: version, shelves: shelves, dimensions: dimensions)
        image.append(bytes: try JSONEncoder().encode(form))
        image.append(UInt64(compartments.count))
        for (compartment, number) in compartments {
            image.append(number)
            image.append(compartment.database.rawValue)
            image.append(compartment.owner?.rawValue ?? "")
            image.append(compartment.zoneID?.zoneName ?? "")
            image.append(compartment.zoneID?.ownerRecordName?.rawValue ?? "")
        }
    }

    /// Fills a catalog that holds nothing from an image.
    ///
    /// - Throws: `ImageDamage` if it is not one of ``write(to:)``, or what the decoder throws.
    mutating func load(_ image: inout ImageReader) throws {
        let form = try JSONDecoder().decode(Form.self, from: Data(try image.run()))
        (version, shelves, dimensions) = (form.version, form.shelves, form.dimensions)
        for (number, shelf) in shelves.enumerated() {
            if let recordType = shelf.recordType { shelfNumbers[recordType] = number }
        }
        for (number, dimension) in dimensions.enumerated() {
            dimensionNumbers[dimension] = UInt32(number)
        }
        let count = try image.count(0...Int(UInt32.max))
        compartments.reserveCapacity(count)
        for _ in 0..<count {
            let number = try image.word(UInt32.self)
            compartments[try Self.compartment(&image)] = number
        }
        guard compartments.count == count, dimensionNumbers.count == dimensions.count,
            shelves.first?.recordType == nil
        else { throw ImageDamage("the catalog has something twice") }
    }

    private static func compartment(_ image: inout ImageReader) throws -> Compartment {
        let (database, owner) = (try image.text(), try image.text())
        let (zoneName, zoneOwner) = (try image.text(), try image.text())
        guard let scope = DatabaseScope(rawValue: database) else {
            throw ImageDamage("a compartment has no database")
        }
        var zoneID: ZoneID?
        if !zoneName.isEmpty {
            zoneID = ZoneID(
                zoneName: zoneName, ownerRecordName: UserID(rawValue: zoneOwner))
            if zoneID == nil { throw ImageDamage("a compartment has no zone") }
        }
        return Compartment(database: scope, owner: UserID(rawValue: owner), zoneID: zoneID)
    }
}

/// A record type is encoded as its name.
extension RecordType: Codable {}
