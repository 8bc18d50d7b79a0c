import FoundationEssentials
import PredicateLanguage
import RelayModel

/// The statement that a key makes about a change.
enum KeyKind: UInt8, Codable {
    /// The field has this value.
    case equal
    /// The field is a collection with this element.
    case element
    /// The field is a text, of any content.
    case text
    /// The field's text begins with these bytes.
    case prefix
    /// The field's text contains these three bytes.
    case gram
    /// The field's texts contain this word.
    case token
    /// The field's number or date is in this cell.
    case cell
    /// The field's location is in this cell.
    case place
    /// The field is a number or date, in an interval that is too wide for cells.
    case open
    /// Only the record type matters.
    case every
    /// The field has this value or is a list with it, by the rules of another dialect.
    case any
    /// The field is a list of numbers or dates, of which two together may satisfy the bounds of an
    /// interval.
    case hull
    /// The field is a list of exactly these values, in this order.
    case sequence
}

/// Everything that identifies a key except its bytes; each dimension gets a number.
struct KeyDimension: Hashable, Codable {
    var plan: UInt32
    var kind: KeyKind
    var path: UInt16 = 0
    var valueClass: ValueClass = .null
    /// Whether the key's bytes begin with the number of a compartment.
    var isCompartmented: Bool
}

/// The part of a container to which keys are limited: a database (with its owner, if it is private)
/// and possibly one of its zones.
struct Compartment: Hashable {
    var database: DatabaseScope
    var owner: UserID?
    var zoneID: ZoneID?

    /// Whether this is the most common compartment, the public database with any zone, which takes
    /// no bytes in a key.
    var isCommon: Bool { database == .public && owner == nil && zoneID == nil }
}

/// The plan of one record type: which paths are decoded, and which keys they are looked up by.
///
/// A plan has two sets of paths, one for keys in the public database and one for keys in
/// compartments, because the keys differ. Both number their paths alike.
struct RecordTypePlan: Codable {
    /// The record type; `nil` for subscriptions to all record types.
    let recordType: RecordType?
    /// The paths that rows or keys use, by number, with the keys outside compartments.
    var paths: [PathUse] = []
    /// The same paths with the keys in compartments.
    var compartmentPaths: [PathUse] = []
    /// The numbers of the paths that are plain fields, by field name.
    var fieldNumbers: [String: Int] = [:]
    /// The numbers of the derived paths, by their origin; a path comes after the one it is derived
    /// from.
    var derivedNumbers: [PathOrigin: Int] = [:]
    /// The numbers of the derived paths, in ascending order.
    var derived: [Int] = []
    /// Whether some path is derived from whole values, so that canonical bytes are not enough.
    var needsValues = false
    /// The paths that are CloudKit's system fields, which are not part of the image.
    var systemPaths: [Int] = []
    /// Whether some predicate reads a system field, by a path or in the evaluator.
    var readsSystemFields = false
    /// The number of the dimension of ``KeyKind/every``, plus 1; 0 if there is none.
    var every: UInt32 = 0
    var compartmentEvery: UInt32 = 0

    init(recordType: RecordType?) {
        self.recordType = recordType
    }

    /// Returns the number of a field's path, if some predicate uses the field.
    @inline(__always)
    func path(of field: String) -> Int? {
        // With a few short names, a scan is faster than hashing.
        for number in 0..<min(paths.count, 12)
        where paths[number].field == field && paths[number].isPlain {
            return number
        }
        return paths.count <= 12 ? nil : fieldNumbers[field]
    }

    /// Returns the number of a derived path, if some predicate uses it.
    func path(_ origin: PathOrigin) -> Int? { derivedNumbers[origin] }

    mutating func addPath(_ field: String, _ origin: PathOrigin = .field) -> Int {
        let number = paths.count
        switch origin {
        case .field:
            fieldNumbers[field] = number
            if SystemField(named: field) != nil {
                systemPaths.append(number)
                readsSystemFields = true
            }
        case .members, .record, .viewedMembers, .viewedSteps: needsValues = true
        case .folded, .viewed: break
        }
        if origin != .field {
            derivedNumbers[origin] = number
            derived.append(number)
        }
        paths.append(PathUse(field: field, origin: origin))
        compartmentPaths.append(PathUse(field: field, origin: origin))
        return number
    }
}

/// The numbers of record types, dimensions and compartments.
///
/// Numbers in use are never withdrawn. A decoded change compares ``version`` to find out that it is
/// out of date.
struct Catalog {
    /// The version, which increases whenever a change would be decoded differently.
    private(set) var version: UInt64 = 0
    private(set) var plans: [RecordTypePlan] = [RecordTypePlan(recordType: nil)]
    private var planNumbers: [RecordType: Int] = [:]
    /// The plan that was used last; changes often have the same record type many times in a row.
    private var lastPlan = 0
    private(set) var dimensions: [KeyDimension] = []
    private var dimensionNumbers: [KeyDimension: UInt32] = [:]
    private var compartments: [Compartment: UInt32] = [:]

    /// Returns the number of a record type's plan; 0 is the plan of subscriptions to all types.
    func plan(of recordType: RecordType) -> Int? { planNumbers[recordType] }

    /// Whether any subscription is limited to a part of the container.
    var hasCompartments: Bool { !compartments.isEmpty }

    /// Returns the number of a compartment that some subscription is limited to.
    func compartment(_ compartment: Compartment) -> UInt32? { compartments[compartment] }

    /// Returns the number of a record type's plan, which is created on first use.
    mutating func makePlan(_ recordType: RecordType?) -> Int {
        guard let recordType else { return 0 }
        if plans[lastPlan].recordType == recordType { return lastPlan }
        if let known = planNumbers[recordType] {
            lastPlan = known
            return known
        }
        planNumbers[recordType] = plans.count
        plans.append(RecordTypePlan(recordType: recordType))
        version += 1
        return plans.count - 1
    }

    /// Returns the number of a compartment, from 1, which is assigned on first use; 0 is the most
    /// common compartment.
    mutating func makeCompartment(_ compartment: Compartment) -> UInt32 {
        if compartment.isCommon { return 0 }
        if let known = compartments[compartment] { return known }
        let number = UInt32(compartments.count + 1)
        compartments[compartment] = number
        version += 1
        return number
    }

    /// The number of paths of one record type that predicates may use and still be judged by rows.
    ///
    /// The time to decode a change grows with the number.
    static let mostPaths = 1000

    /// Returns whether a record type's predicates use too many paths already.
    func isCrowded(_ plan: Int) -> Bool { plans[plan].paths.count >= Self.mostPaths }

    /// Returns the number of a field's path, or of a member inside the field, which is assigned on
    /// first use; `nil` if the record type has too many paths already.
    mutating func makePath(
        _ field: String, inner: [String] = [], folding: TextOptions = [], plan: Int
    ) -> Int? {
        guard let base = makePath(field, inner, plan), !folding.isEmpty else {
            return makePath(field, inner, plan)
        }
        return makePath("", .folded(base, folding), plan)
    }

    /// Returns the number of the path to a field or a member inside it, in the view of another
    /// dialect's rules; `nil` if the record type has too many paths already.
    mutating func makePath(
        _ field: String, inner: [String], view: ValueView, plan: Int
    ) -> Int? {
        if !inner.isEmpty { return makePath("", .viewedMembers([field] + inner, view), plan) }
        return makePath(field, [], plan).flatMap { makePath("", .viewed($0, view), plan) }
    }

    /// Returns the number of the path to a value inside a field, by steps of which one is an index;
    /// `nil` if the record type has too many paths already.
    mutating func makePath(_ steps: [RealmStep], view: ValueView, plan: Int) -> Int? {
        makePath("", .viewedSteps(steps, view), plan)
    }

    /// Returns the number of the path to the whole record, which is used for words only.
    mutating func makeRecordPath(plan: Int) -> Int? { makePath("", .record, plan) }

    /// Notes that a predicate on the record type reads a system field in the evaluator.
    mutating func useSystemFields(plan: Int) {
        guard !plans[plan].readsSystemFields else { return }
        plans[plan].readsSystemFields = true
        version += 1
    }

    /// Returns whether changes of a record type need system fields.
    ///
    /// If the plan of all record types uses them, every change does.
    func readsSystemFields(_ plan: Int?) -> Bool {
        plans[0].readsSystemFields || plan.map { plans[$0].readsSystemFields } ?? false
    }

    private mutating func makePath(_ field: String, _ inner: [String], _ plan: Int) -> Int? {
        if !inner.isEmpty { return makePath("", .members([field] + inner), plan) }
        if let known = plans[plan].path(of: field) { return known }
        if isCrowded(plan) { return nil }
        version += 1
        return plans[plan].addPath(field)
    }

    private mutating func makePath(
        _ field: String, _ origin: PathOrigin, _ plan: Int
    ) -> Int? {
        if let known = plans[plan].path(origin) { return known }
        if isCrowded(plan) { return nil }
        version += 1
        return plans[plan].addPath(field, origin)
    }

    /// Returns the number of a dimension, which is assigned and entered in its plan on first use.
    mutating func makeDimension(_ dimension: KeyDimension) -> UInt32 {
        if let known = known(dimension) { return known - 1 }
        let number = UInt32(dimensions.count)
        dimensions.append(dimension)
        dimensionNumbers[dimension] = number
        version += 1
        let plan = Int(dimension.plan)
        if dimension.kind == .every {
            if dimension.isCompartmented {
                plans[plan].compartmentEvery = number + 1
            } else {
                plans[plan].every = number + 1
            }
        } else {
            withUse(of: dimension) { $0.enter(dimension, number: number) }
            if dimension.kind == .token { plans[plan].needsValues = true }
        }
        return number
    }

    private func known(_ dimension: KeyDimension) -> UInt32? {
        if dimension.kind == .every {
            return dimensionNumbers[dimension].map { $0 + 1 }
        }
        let plan = Int(dimension.plan)
        let path = Int(dimension.path)
        let number =
            dimension.isCompartmented
            ? plans[plan].compartmentPaths[path].number(of: dimension)
            : plans[plan].paths[path].number(of: dimension)
        return number == 0 ? nil : number
    }

    // MARK: What a dimension is looked up by

    /// Returns the best size of cells for an interval among those in use in a dimension.
    func chooseCells(_ interval: borrowing Interval, _ dimension: KeyDimension) -> CellLevel? {
        let (plan, path) = (Int(dimension.plan), Int(dimension.path))
        return dimension.isCompartmented
            ? plans[plan].compartmentPaths[path].levels.choose(for: interval)
            : plans[plan].paths[path].levels.choose(for: interval)
    }

    /// Returns the number of bytes of a prefix that make a key in a dimension.
    func prefixLength(for wanted: Int, _ dimension: KeyDimension) -> Int? {
        let (plan, path) = (Int(dimension.plan), Int(dimension.path))
        return dimension.isCompartmented
            ? plans[plan].compartmentPaths[path].prefixLength(for: wanted)
            : plans[plan].paths[path].prefixLength(for: wanted)
    }

    /// Notes that prefixes of `length` bytes must be looked up.
    mutating func usePrefix(length: Int, _ dimension: KeyDimension) {
        note(dimension) { $0.prefixLengths.insert(UInt64(1) << UInt64(length)) }
    }

    /// Notes that cells of this size must be looked up.
    mutating func useCell(_ cells: CellLevel, _ dimension: KeyDimension) {
        note(dimension) { $0.levels.insert(cells) }
    }

    /// Notes that the cells of locations at this level must be looked up.
    mutating func usePlace(level: Int, _ dimension: KeyDimension) {
        note(dimension) { $0.placeLevels.insert(UInt64(1) << UInt64(level)) }
    }

    /// Notes that three bytes (a gram) or a word must be looked up.
    mutating func useText(_ hash: UInt64, _ dimension: KeyDimension) {
        note(dimension) { use in
            dimension.kind == .gram ? use.grams.insert(hash) : use.tokens.insert(hash)
        }
    }

    /// Raises the version if `body` returns that it added something.
    private mutating func note(_ dimension: KeyDimension, _ body: (inout PathUse) -> Bool) {
        if withUse(of: dimension, body) { version += 1 }
    }

    @discardableResult
    private mutating func withUse<Result>(
        of dimension: KeyDimension, _ body: (inout PathUse) -> Result
    ) -> Result {
        let plan = Int(dimension.plan)
        let path = Int(dimension.path)
        if dimension.isCompartmented { return body(&plans[plan].compartmentPaths[path]) }
        return body(&plans[plan].paths[path])
    }
}

// MARK: - Snapshots

extension Catalog {
    private struct Form: Codable {
        var version: UInt64
        var plans: [RecordTypePlan]
        var dimensions: [KeyDimension]
    }

    /// Appends the catalog to an image.
    ///
    /// - Throws: The encoder's error.
    func write(to image: inout ImageWriter) throws {
        let form = Form(version: version, plans: plans, dimensions: dimensions)
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

    /// Fills an empty catalog from an image.
    ///
    /// - Throws: `ImageDamage` if the image is not one that ``write(to:)`` makes, or the decoder's
    ///   error.
    mutating func load(_ image: inout ImageReader) throws {
        let form = try JSONDecoder().decode(Form.self, from: Data(try image.run()))
        (version, plans, dimensions) = (form.version, form.plans, form.dimensions)
        for (number, plan) in plans.enumerated() {
            if let recordType = plan.recordType { planNumbers[recordType] = number }
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
            plans.first?.recordType == nil
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
