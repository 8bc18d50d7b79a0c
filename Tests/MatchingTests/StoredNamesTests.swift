import RelayModel
import RelayTestKit
import Testing

@testable import Matching

/// The decoder of stored changes must know the names in the golden file, and no others.
@Suite struct StoredNamesTests {
    private typealias Names = StoredChangeDecoder.Names

    /// Returns the first eight bytes of a name, with the first as the lowest.
    private func head(_ name: String) -> UInt64 {
        name.utf8.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    @Test func `the decoder knows the names that are written`() throws {
        let known: [String: UInt64] = [
            "op": Names.op, "type": Names.type, "db": Names.db, "zone": Names.zone,
            "owner": Names.owner, "before": Names.before, "after": Names.after, "at": Names.at,
            "snapshot": Names.snapshot, "readers": Names.readers,
        ]
        let text = try #require(try GoldenForms.texts()["change.update"])
        let written = try JSONReader(try JSONValue(stored: text)).object.members.map(\.name)
        for (name, word) in known {
            #expect(written.contains(name), "\(name)")
            #expect(word == head(name), "\(name)")
        }
        // No other written name begins with the same eight bytes.
        let others = written.filter { known[$0] == nil }.map(head)
        #expect(Set(others).isDisjoint(with: known.values))
    }
}
