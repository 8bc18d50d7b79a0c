import FoundationEssentials
import PredicateLanguage
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
    /// The field's text has these three bytes somewhere.
    case gram
    /// The field's texts have this word.
    case token
    /// The field's number or date lies in this cell.
    case cell
    /// The field's place lies in this cell.
    case place
    /// The field is a number or date; its bounds are too wide for cells.
    case open
    /// Nothing but the record type is asked.
    case every
    /// The field has this value, or is a list with it, as another dialect's rules see it.
    case any
    /// The field is a list of numbers or dates, of which two may satisfy the bounds of an interval.
    case hull
    /// The field is a list of just these values, in this order.
    case sequence
}

/// What one key is about, apart from its bytes; interned to a number.
struct KeyDimension: Hashable, Codable {
    var plan: UInt32
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

/// The plan of one record type: which paths are decoded, and by which keys they are looked up.
///
/// There are two plans of a record type, one for the public database and one for compartments,
/// because their keys differ; both number their paths alike.
struct RecordTypePlan: Codable {
    /// The record type; `nil` for subscriptions to all.
    let recordType: RecordType?
    /// The paths that rows or keys name, by number.
    var paths: [PathUse] = []
    /// The same for the keys in compartments.
    var compartmentPaths: [PathUse] = []
    /// The paths that are plain fields, by their names.
    var fieldNumbers: [String: Int] = [:]
    /// The paths that are derived from fields, by how; a path comes after what it is derived from.
    var derivedNumbers: [PathOrigin: Int] = [:]
    /// The numbers of the derived paths, ascending.
    var derived: [Int] = []
    /// Whether some path is derived from whole values, for which canonical bytes do not do.
    var needsValues = false
    /// The paths that are CloudKit's system fields, which do not come from the image.
    var systemPaths: [Int] = []
    /// Whether some predicate reads a system field, be it by a path or in the evaluator.
    var readsSystemFields = false
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
        for number in 0..<min(paths.count, 12)
        where paths[number].field == field && paths[number].isPlain {
            return number
        }
        return paths.count <= 12 ? nil : fieldNumbers[field]
    }

    /// The number of a derived path, if some predicate names it.
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

/// Everything that has been given a number: record types, dimensions, compartments.
///
/// Numbers are never taken back; ``version`` tells a decoded change that it is out of date.
struct Catalog {
    /// Raised whenever a change would be decoded differently.
    private(set) var version: UInt64 = 0
    private(set) var plans: [RecordTypePlan] = [RecordTypePlan(recordType: nil)]
    private var planNumbers: [RecordType: Int] = [:]
    /// The plan that was asked for last: the same record type comes many times in a row.
    private var lastPlan = 0
    private(set) var dimensions: [KeyDimension] = []
    private var dimensionNumbers: [KeyDimension: UInt32] = [:]
    private var compartments: [Compartment: UInt32] = [:]

    /// The number of a record type's plan; 0 is the plan of subscriptions to all.
    func plan(of recordType: RecordType) -> Int? { planNumbers[recordType] }

    /// Whether any subscription is confined to a part of the container.
    var hasCompartments: Bool { !compartments.isEmpty }

    /// The number of a compartment that some subscription is confined to.
    func compartment(_ compartment: Compartment) -> UInt32? { compartments[compartment] }

    /// The number of a record type's plan, given out when first asked for.
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

    /// The number of a compartment, from 1, given out when first asked for; 0 is the common one.
    mutating func makeCompartment(_ compartment: Compartment) -> UInt32 {
        if compartment.isCommon { return 0 }
        if let known = compartments[compartment] { return known }
        let number = UInt32(compartments.count + 1)
        compartments[compartment] = number
        version += 1
        return number
    }

    /// Paths of one record type that predicates may name and still be judged by rows; the time to
    /// decode a change grows with them.
    static let mostPaths = 1000

    /// Whether a record type's predicates name too many fields already.
    func isCrowded(_ plan: Int) -> Bool { plans[plan].paths.count >= Self.mostPaths }

    /// The number of a field, or of a member inside it, given out when first asked for; `nil` if
    /// the record type has too many already.
    mutating func makePath(
        _ field: String, inner: [String] = [], folding: TextOptions = [], plan: Int
    ) -> Int? {
        guard let base = makePath(field, inner, plan), !folding.isEmpty else {
            return makePath(field, inner, plan)
        }
        return makePath("", .folded(base, folding), plan)
    }

    /// The number of a field, or of a member inside it, as another dialect's rules see it; `nil` if
    /// the record type has too many already.
    mutating func makePath(
        _ field: String, inner: [String], view: ValueView, plan: Int
    ) -> Int? {
        if !inner.isEmpty { return makePath("", .viewedMembers([field] + inner, view), plan) }
        return makePath(field, [], plan).flatMap { makePath("", .viewed($0, view), plan) }
    }

    /// The number of a value inside a field, by steps of which one is an index; `nil` if the record
    /// type has too many already.
    mutating func makePath(_ steps: [RealmStep], view: ValueView, plan: Int) -> Int? {
        makePath("", .viewedSteps(steps, view), plan)
    }

    /// The number of the path to the whole record, which only words are looked up in.
    mutating func makeRecordPath(plan: Int) -> Int? { makePath("", .record, plan) }

    /// Notes that some predicate on a record type reads a system field in the evaluator.
    mutating func useSystemFields(plan: Int) {
        guard !plans[plan].readsSystemFields else { return }
        plans[plan].readsSystemFields = true
        version += 1
    }

    /// Whether changes of a record type are asked for system fields; those on the plan of all
    /// record types are asked of every change.
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

    /// The number of a dimension, given out and entered on its plan when first asked for.
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

    /// The best of some sizes of cells in one dimension.
    func chooseCells(_ interval: borrowing Interval, _ dimension: KeyDimension) -> CellLevel? {
        let (plan, path) = (Int(dimension.plan), Int(dimension.path))
        return dimension.isCompartmented
            ? plans[plan].compartmentPaths[path].levels.choose(for: interval)
            : plans[plan].paths[path].levels.choose(for: interval)
    }

    /// How much of a prefix is a key in one dimension.
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

    /// Notes that the cells of places of this level must be looked up.
    mutating func usePlace(level: Int, _ dimension: KeyDimension) {
        note(dimension) { $0.placeLevels.insert(UInt64(1) << UInt64(level)) }
    }

    /// Notes that three bytes or a word must be looked up.
    mutating func useText(_ hash: UInt64, _ dimension: KeyDimension) {
        note(dimension) { use in
            dimension.kind == .gram ? use.grams.insert(hash) : use.tokens.insert(hash)
        }
    }

    /// Raises the version if `body` says that it did something new.
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
    /// - Throws: What the encoder throws.
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

    /// Fills a catalog that holds nothing from an image.
    ///
    /// - Throws: `ImageDamage` if it is not one of ``write(to:)``, or what the decoder throws.
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
