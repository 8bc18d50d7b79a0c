import RelayModel
import RelayTestKit
import Testing

@testable import Live

/// The order in which tables are read for live results.
@Suite struct TableTurnsTests {
    private static let busy = Fixtures.container
    private static let quiet = ContainerKey(
        container: Fixtures.identifier("quiet"), environment: .production)

    private static func table(_ type: String, of owner: String? = nil) -> LiveContainer.TableKey {
        LiveContainer.TableKey(
            database: owner == nil ? .public : .private,
            owner: owner.map { Fixtures.identifier($0) }, type: Fixtures.identifier(type))
    }

    private static func order(_ turns: TableTurns) -> [String] {
        var turns = turns
        var order: [String] = []
        while let (container, table) = turns.next() {
            let name = container == busy ? "busy" : "quiet"
            order.append("\(name) \(table.owner?.rawValue ?? "public") \(table.type.rawValue)")
        }
        return order
    }

    @Test func `a container with many tables does not delay another one`() {
        var turns = TableTurns()
        for number in 0..<3 {
            turns.append(Self.table("T\(number)", of: "alice"), of: Self.busy)
        }
        turns.append(Self.table("T", of: "bob"), of: Self.busy)
        turns.append(Self.table("T"), of: Self.busy)
        turns.append(Self.table("T"), of: Self.quiet)
        #expect(
            Self.order(turns) == [
                "busy alice T0", "quiet public T", "busy bob T", "busy public T",
                "busy alice T1", "busy alice T2",
            ])
    }

    @Test func `a table waits once, and again only after it was taken`() {
        var turns = TableTurns()
        #expect(Self.order(turns).isEmpty)
        turns.append(Self.table("T"), of: Self.busy)
        turns.append(Self.table("T"), of: Self.busy)
        #expect(Self.order(turns) == ["busy public T"])
        _ = turns.next()
        #expect(Self.order(turns).isEmpty)
        turns.append(Self.table("T"), of: Self.busy)
        #expect(Self.order(turns) == ["busy public T"])
    }
}
