import RelayModel
import Testing

@testable import Fanout

/// A table that keeps the common parts of many subscriptions or devices once.
@Suite struct TemplateTableTests {
    private static func table() -> TemplateTable<String> {
        TemplateTable(write: { $0 }, read: { $0 })
    }

    private static let spellings = ["\u{E9}", "e\u{301}"]

    @Test func `equal templates are kept once, as long as they are used`() {
        var table = Self.table()
        let numbers = ["a", "b", "a"].map { table.number(of: $0) }
        #expect(numbers[0] == numbers[2] && numbers[0] != numbers[1])
        table.release(numbers[0])
        #expect(table.isInUse(numbers[0]))
        table.release(numbers[0])
        #expect(!table.isInUse(numbers[0]) && table.isInUse(numbers[1]))
    }

    /// A subscription in another spelling must not change the pushes of all others.
    @Test func `templates in different spellings are not equal`() {
        var table = Self.table()
        let numbers = Self.spellings.map { table.number(of: $0) }
        #expect(numbers[0] != numbers[1])
        let texts = numbers.map { Array((table.value($0) ?? "").utf8) }
        #expect(texts == Self.spellings.map { Array($0.utf8) })
        let again = table.number(of: Self.spellings[1])
        #expect(again == numbers[1])
        // The released template is removed, and the other one is still found.
        table.release(numbers[0])
        let last = table.number(of: Self.spellings[1])
        #expect(last == numbers[1])
    }

    @Test func `a template released after a snapshot is not found`() throws {
        var table = Self.table()
        let numbers = Self.spellings.map { table.number(of: $0) }
        var image = ImageWriter()
        table.write(to: &image)
        var reader = ImageReader(image.bytes)
        var loaded = Self.table()
        try loaded.load(&reader)
        loaded.release(numbers[1])
        let found = loaded.number(of: Self.spellings[0])
        #expect(found == numbers[0])
        let other = loaded.number(of: Self.spellings[1])
        #expect(other != numbers[0])
        #expect(loaded.isInUse(other))
        let text = Array((loaded.value(other) ?? "").utf8)
        #expect(text == Array(Self.spellings[1].utf8))
    }
}
