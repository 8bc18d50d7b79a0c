import RegularExpressions
import RelayModel
import Testing

@testable import PredicateLanguage

/// How a trace shows long values.
@Suite struct TraceTests {
    private static let long: [FieldValue] = {
        let numbers = (0..<50_000).map { FieldValue.integer(Int64($0)) }
        let texts = (0..<50_000).map { FieldValue.string("text \($0)") }
        var members: RecordFields = [:]
        for number in 0..<5_000 { members["k\(number)"] = .integer(Int64(number)) }
        return [
            .string(String(repeating: "a", count: 100_000)),
            .bytes([UInt8](repeating: 7, count: 100_000)), .list(numbers),
            .list([.list(texts), .null]), .list(numbers.map { .list([$0]) }), .map(members),
        ]
    }()

    @Test(arguments: long)
    func `a long value is shortened`(value: FieldValue) throws {
        let prepared = try PreparedPredicate(RecordPredicate(format: "x == 1"))
        let trace = prepared.trace(onValue: .map(["x": value]))
        let text = FormatPrinter.text(of: value)
        #expect(trace.text == "`x == 1` is false: x is \(text.prefix(200))…")
        let cut = try #require(trace.comparisons.first?.cut(beyond: 2_000).left)
        let shown = cut.notation.text.utf8.count
        #expect((501...20_000).contains(shown))
        let begun = FormatPrinter.text(of: cut).prefix(500)
        #expect(text.hasPrefix(begun))
    }

    @Test func `a short value is shown whole`() {
        let values: [FieldValue] = [
            .null, .bool(true), .integer(7), .string(""), .string("e\u{301}"), .bytes([1, 2]),
            .list([]), .list([.integer(1), .string("a")]), .set([.integer(3), .integer(1)]),
            .map(["k": .list([.null]), "a": .string("b")]),
            .list([FieldValue](repeating: .integer(7), count: 190)),
            .string(String(repeating: "é", count: 190)),
        ]
        for value in values { #expect(value.beginning(400) == value) }
    }
}
