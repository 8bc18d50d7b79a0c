import Testing

@testable import PostgresFollowing

/// The names that columns had when a row was written to the log.
@Suite struct FormerNameTests {
    private static func former(
        _ key: [String], _ now: [String], then: [String]
    ) -> [String]? {
        Relation(
            id: 7, schema: "public", name: "t", identity: UInt8(ascii: "f"),
            columns: then.map { RelationColumn(name: $0, type: 23, isIdentity: true) }
        ).formerNames(of: key, among: now)
    }

    @Test(arguments: [
        // A column was renamed, also beside another one, and two at once.
        (["z"], ["z", "b", "v"], ["a", "b", "v"], ["a"]),
        (["b", "z"], ["z", "b", "v"], ["a", "b", "v"], ["b", "a"]),
        (["y", "z"], ["z", "y", "v"], ["a", "b", "v"], ["b", "a"]),
        // Other columns were added, dropped, or added in place of dropped ones.
        (["z"], ["z", "b", "v", "n"], ["a", "b", "v"], ["a"]),
        (["z"], ["b", "z", "n"], ["b", "a"], ["a"]),
        (["z"], ["z", "b"], ["a", "b", "v"], ["a"]),
        (["z"], ["z", "v", "n"], ["a", "v", "w"], ["a"]),
        (["b"], ["b", "c", "d"], ["a", "b", "c"], ["b"]),
    ])
    func `the former name of a renamed column is found by its place`(
        key: [String], now: [String], then: [String], former: [String]
    ) {
        #expect(Self.former(key, now, then: then) == former)
    }

    @Test(arguments: [
        // Another key; a column renamed beside a dropped one; exchanged names.
        (["d"], ["b", "c", "d"], ["a", "b", "c"]), (["z"], ["z", "v"], ["a", "b", "v"]),
        (["a"], ["b", "a"], ["a", "b"]),
    ])
    func `an uncertain former name is not guessed`(key: [String], now: [String], then: [String]) {
        #expect(Self.former(key, now, then: then) == nil)
    }
}
