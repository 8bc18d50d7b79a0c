import PredicateLanguage
import RegularExpressions
import RelayModel

/// The entry point of libFuzzer: the first byte chooses the predicate's form, and the rest is the
/// text.
///
/// A predicate that is accepted must print as a text that reads back as the same predicate, and
/// must evaluate without a crash. A refusal must name a place inside the text.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 1, count < 65_536 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
    switch bytes[0] % 4 {
    case 0: judge(text) { try RecordPredicate(format: text, arguments: Probe.arguments) }
    case 1: judgeRealm(text)
    case 2: judgeJSON(text) { try RecordPredicate(where: $0) }
    default: judgeJSON(text) { try RecordPredicate(filterBy: $0) }
    }
    return 0
}

/// The records and arguments that predicates are evaluated with.
enum Probe {
    static let arguments: [FieldValue] = [
        .string("x"), .integer(1), .double(1.5), .list([.string("x"), .integer(1)]), .null,
    ]

    static let variables: RecordFields = ["x": .integer(1), "0": .string("x"), "K0": .string("a")]

    static let record: RecordFields = [
        "a": .integer(1), "b": .string("text"), "c": .list([.integer(1), .integer(2), .null]),
        "d": .map(["a": .integer(3), "name": .string("Ä")]), "e": .bool(true),
        "age": .integer(.max), "price": .double(.nan), "name": .string("Alice"),
        "items": .list([
            .map(["price": .double(5.5), "name": .string("milk"), "tags": .list([])]),
            .map(["price": .null, "name": .string("ßẞ")]), .null,
        ]),
        "@links": .map(["Type": .map(["prop": .list([.map(["name": .string("x")])])])]),
        "time": .timestamp(Timestamp(seconds: 0)), "data": .bytes([0, 255]),
        "location": .list([.integer(1), .integer(2)]),
        "place": Location(latitude: 1, longitude: 2).map(FieldValue.location) ?? .null,
    ]
}

private func judge(_ text: String, _ read: () throws -> RecordPredicate) {
    do {
        tryOut(try read())
    } catch let error as PredicateError {
        let end = error.offset + error.length
        precondition(error.offset >= 0 && error.length >= 0, "\(error)")
        precondition(end <= text.utf8.count, "\(error) ends at \(end) of \(text.utf8.count)")
        precondition(!error.reason.isEmpty)
    } catch {
        preconditionFailure("\(error)")
    }
}

private func judgeRealm(_ text: String) {
    judge(text) { try RealmQuery(parsing: text, arguments: Probe.arguments).predicate }
    judge(text) { try RealmQuery(parsing: text).predicate }
    guard let query = try? RealmQuery(parsing: text, arguments: Probe.arguments) else { return }
    let schema = RecordSchema(inferredFrom: [Probe.record])
    try? query.check(against: schema)
    try? query.checkSubscription(schema: schema)
    _ = try? query.results(in: [Probe.record, [:]])
}

private func judgeJSON(_ text: String, _ read: (JSONValue) throws -> RecordPredicate) {
    guard let json = try? JSONValue(parsing: Array(text.utf8)) else { return }
    guard let predicate = try? read(json) else { return }
    tryOut(predicate)
}

private func tryOut(_ predicate: RecordPredicate) {
    let canonical = predicate.canonicalText
    try? predicate.check()
    if canonical.utf8.count <= Limits.maximumPredicateBytes {
        do {
            let again = try RecordPredicate(format: canonical)
            precondition(again.canonicalText == canonical, "\(canonical) → \(again.canonicalText)")
        } catch {
            preconditionFailure("\(canonical): \(error)")
        }
    }
    let moment = Timestamp(seconds: 1_700_000_000)
    var layout = FieldLayout()
    guard let prepared = try? PreparedPredicate(predicate, layout: &layout) else { return }
    for record in [Probe.record, [:]] {
        let outcome = prepared.evaluate(on: record, variables: Probe.variables, now: moment)
        let trace = prepared.trace(
            onValue: .map(record), variables: Probe.variables, now: moment)
        precondition(outcome == trace.outcome, canonical)
        let placed = prepared.evaluate(
            on: layout.row(of: record), variables: Probe.variables, now: moment)
        precondition(placed == outcome, canonical)
        _ = trace.text
    }
}
