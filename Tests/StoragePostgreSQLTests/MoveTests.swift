import Foundation
import GRDB
import Migrations
import RelayTestKit
import Storage
import StorageSQLite
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// Moving a store: it is moved completely, or an interrupted move continues.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct MoveTests {
    /// The error that interrupts a move in the middle.
    private struct Interruption: Error {}

    private static func server(
        _ place: PostgresPlace, _ role: ServerMoveEnd.Role
    ) async throws -> ServerMoveEnd {
        let identity = (0..<16).map { _ in UInt8.random(in: 0...UInt8.max) }
        return try await ServerMoveEnd.open(
            place, as: role, StoreClaimant(name: "test", identity: identity, isMove: true)
        ) { throw Interruption() }
    }

    /// Runs a move between two ends, and releases both.
    private static func run(
        _ source: any MoveEnd, _ target: any MoveEnd, rows: Int = 1000,
        tell: @escaping (MoveProgress) throws -> Void = { _ in }
    ) async throws -> MoveReport {
        var limits = PortionLimits()
        limits.rows = rows
        let moved = Result {
            try StoreMove(from: source, to: target, limits: limits, tell: tell).run()
        }
        await source.end()
        await target.end()
        return try moved.get()
    }

    @discardableResult private static func move(
        _ path: String, to place: PostgresPlace, rows: Int = 1000,
        waits: Bool = true, tell: @escaping (MoveProgress) throws -> Void = { _ in }
    ) async throws -> MoveReport {
        let source =
            waits ? try Self.file(path, .source) : try EmbeddedMoveEnd(path, as: .source)
        let target: ServerMoveEnd
        do {
            target = try await server(place, .target)
        } catch {
            await source.end()
            throw error
        }
        return try await run(source, target, rows: rows, tell: tell)
    }

    private static func move(_ place: PostgresPlace, to path: String) async throws {
        _ = try await run(
            try await server(place, .source), try file(path, .target), rows: 3)
    }

    /// Returns the description of the error that `body` throws.
    private static func refusal(_ body: () async throws -> Void) async throws -> String {
        do {
            try await body()
        } catch let error as StorageError {
            return error.description
        }
        Issue.record("nothing was refused")
        return ""
    }

    private static func newPath() throws -> String { try TemporaryStore(in: .memory).path }

    private static func file(
        _ path: String, _ role: EmbeddedMoveEnd.Role
    ) throws -> EmbeddedMoveEnd {
        try EmbeddedMoveEnd(path, as: role)
    }

    private static func open(_ path: String) throws -> RelayStore {
        try RelayStore.open(path: path, settings: .forTests)
    }

    private static func newStore() async throws -> String {
        let home = try TemporaryStore(in: .memory)
        await (try home.open()).close()
        return home.path
    }

    // MARK: Whole

    @Test func `every table of both engines is moved or listed as local`() async throws {
        let known = MovedTables.local.union(MovedTables.special).union(MovedTables.order)
        let file = try Self.file(try Self.newPath(), .target)
        let server = try await Self.server(try TestPlace().place(), .target)
        let tables = [try file.read(TableLayout.all), try server.read(TableLayout.all)]
        await file.end()
        await server.end()
        for found in tables { #expect(Set(found.keys).subtracting(known) == []) }
        #expect(Set(MovedTables.order).subtracting(tables[0].keys) == [])
        let rows = try await FilledFiles.all().reduce(into: Set<String>()) { all, file in
            let path = try FilledFiles.copy(file)
            if file.tables.contains("subscription") { try FilledFiles.complete(path) }
            all.formUnion(try FilledFiles.filled(path))
        }
        #expect(Set(MovedTables.order).subtracting(rows) == [], "no test has rows in these")
    }

    @Test func `a move there and back changes nothing`() async throws {
        for file in try await FilledFiles.all() {
            let path = try FilledFiles.copy(file)
            if file.tables.contains("subscription") { try FilledFiles.complete(path) }
            let before = try FilledFiles.contents(of: path)
            let problems = try RelayStore.check(path: path).problems
            let place = try TestPlace().place()
            let report = try await Self.move(path, to: place)
            #expect(report.problems == problems)
            #expect(try RelayStore.check(place).problems == problems)
            let back = try Self.newPath()
            try await Self.move(place, to: back)
            let after = try FilledFiles.contents(of: back)
            #expect(Set(after).symmetricDifference(before) == [])
            #expect(after.count == before.count)
        }
    }

    @Test func `a moved store keeps its identity and its head`() async throws {
        let path = try FilledFiles.copy(try await FilledFiles.all()[0])
        let first = try Self.open(path)
        let (identity, head) = (first.storeIdentity, try await first.head())
        await first.close()
        let place = try TestPlace().place()
        try await Self.move(path, to: place)
        let moved = try RelayStore.open(place, as: .forTests(), settings: .forTests)
        #expect(moved.storeIdentity == identity)
        #expect(try await moved.head() == head)
        await moved.close()
        let back = try Self.newPath()
        try await Self.move(place, to: back)
        let last = try Self.open(back)
        #expect(last.storeIdentity == identity)
        #expect(try await last.head() == head)
        await last.close()
        #expect(try RelayStore.check(path: back).problems == [])
    }

    @Test func `gaps in a server's row numbers do not hinder a move back`() async throws {
        let path = try FilledFiles.copy(try await FilledFiles.all()[0])
        let before = try Self.rows(of: path)
        let test = try TestPlace()
        let place = try test.place()
        try await Self.move(path, to: place)
        // Rows that were deleted, or whose transaction failed, leave gaps in a sequence.
        for (table, column) in MovedTables.numbered {
            let name = "\(test.schema).\(table.lowercased())"
            try test.server.sql(
                "SELECT nextval(pg_get_serial_sequence('\(name)', '\(column)'))")
        }
        let back = try Self.newPath()
        try await Self.move(place, to: back)
        #expect(try Self.rows(of: back) == before)
    }

    /// Returns the rows of a file, without the remembered row numbers.
    private static func rows(of path: String) throws -> [String] {
        try FilledFiles.contents(of: path).filter { !$0.hasPrefix("sqlite_sequence ") }
    }

    // MARK: Interrupted

    @Test func `a move interrupted after any commit ends with the same result`() async throws {
        let path = try FilledFiles.copy(try await FilledFiles.all()[0])
        let before = try FilledFiles.contents(of: path)
        let place = try TestPlace().place()
        var attempts = 0
        while true {
            attempts += 1
            var told = 0
            do {
                try await Self.move(path, to: place, rows: 2) { progress in
                    told += 1
                    // The first two reports come before the first portion.
                    if told == 3, progress.step == .copying { throw Interruption() }
                }
                break
            } catch is Interruption {}
            if attempts.isMultiple(of: 7) { try await expectNoRelay(path, place) }
            try #require(attempts < 1000)
        }
        #expect(attempts > 20)
        let back = try Self.newPath()
        try await Self.move(place, to: back)
        #expect(try FilledFiles.contents(of: back) == before)
    }

    private func expectNoRelay(_ path: String, _ place: PostgresPlace) async throws {
        let atTarget = try await Self.refusal {
            try await RelayStore.open(place, as: .forTests(), settings: .forTests).close()
        }
        #expect(atTarget.contains("are being moved into it: run belfry move again to finish"))
        let atSource = try await Self.refusal {
            try await RelayStore.open(path: path, settings: .forTests).close()
        }
        #expect(atSource.contains("it was moved to schema"))
    }

    @Test(arguments: [1, 2]) func `a move interrupted before the first row continues`(
        after told: Int
    ) async throws {
        let path = try await Self.newStore()
        let place = try TestPlace().place()
        var count = 0
        await #expect(throws: Interruption.self) {
            try await Self.move(path, to: place) { _ in
                count += 1
                if count == told { throw Interruption() }
            }
        }
        try await Self.move(path, to: place)
        try await RelayStore.open(place, as: .forTests(), settings: .forTests).close()
    }

    @Test func `a move interrupted between its marks is refused once the store went elsewhere`()
        async throws
    {
        let path = try await Self.newStore()
        let place = try TestPlace().place()
        await #expect(throws: Interruption.self) {
            try await Self.move(path, to: place) { _ in throw Interruption() }
        }
        try await Self.move(path, to: try TestPlace().place())
        let refusal = try await Self.refusal { try await Self.move(path, to: place) }
        #expect(refusal.contains("it was moved to schema"))
    }

    @Test func `a file that is moved incompletely cannot be restored`() async throws {
        let path = try FilledFiles.copy(try await FilledFiles.all()[0])
        let place = try TestPlace().place()
        try await Self.move(path, to: place)
        let half = try Self.newPath()
        let source = try await Self.server(place, .source)
        await #expect(throws: Interruption.self) {
            _ = try await Self.run(source, try Self.file(half, .target), rows: 2) {
                if $0.table == "subscription" || $0.table == "progress" { throw Interruption() }
            }
        }
        let copy = try Self.newPath()
        _ = try await Self.refusal { _ = try RelayStore.restore(from: half, to: copy) }
        #expect(!FileManager.default.fileExists(atPath: copy))
    }

    // MARK: Refused

    @Test func `a target with rows is refused, and the source stays a store`() async throws {
        let path = try FilledFiles.copy(try await FilledFiles.all()[0])
        let place = try TestPlace().place()
        try await Self.move(path, to: place)
        let other = try await Self.newStore()
        let refusal = try await Self.refusal { try await Self.move(other, to: place) }
        #expect(refusal.contains("it already contains a store (container"))
        try await RelayStore.open(path: other, settings: .forTests).close()
    }

    @Test func `a moved store cannot be moved again, but can be taken back`() async throws {
        let path = try FilledFiles.copy(try await FilledFiles.all()[0])
        let first = try Self.open(path)
        let identity = first.storeIdentity
        await first.close()
        try await Self.move(path, to: try TestPlace().place())
        let again = try await Self.refusal {
            try await Self.move(path, to: try TestPlace().place())
        }
        #expect(again.contains("it was moved to schema"))
        let failing = try Self.file(path, .source)
        // An empty identity makes this fail. A cancellation that fails or is interrupted can be
        // repeated.
        #expect(throws: (any Error).self) { try StoreMove.takeBack(failing, identity: Data()) }
        await failing.end()
        let end = try Self.file(path, .source)
        try StoreMove.takeBack(end, identity: Data(repeating: 7, count: 16))
        await end.end()
        let store = try Self.open(path)
        #expect(store.storeIdentity != identity)
        await store.close()
        let twice = try Self.file(path, .source)
        let refusal = try await Self.refusal { try StoreMove.takeBack(twice, identity: Data()) }
        await twice.end()
        #expect(refusal.contains("it was not moved away"))
    }

    @Test func `a move whose source was taken back does not continue`() async throws {
        let path = try FilledFiles.copy(try await FilledFiles.all()[0])
        let place = try TestPlace().place()
        await #expect(throws: Interruption.self) {
            try await Self.move(path, to: place, rows: 2) {
                if $0.table == "progress" { throw Interruption() }
            }
        }
        let end = try Self.file(path, .source)
        try StoreMove.takeBack(end, identity: Data(repeating: 7, count: 16))
        await end.end()
        let refusal = try await Self.refusal { try await Self.move(path, to: place) }
        #expect(refusal.contains("where there is another store now"))
    }

    @Test func `a schema restored by its server gets a new identity`() async throws {
        let place = try TestPlace().place()
        let first = try RelayStore.open(place, as: .forTests(), settings: .forTests)
        let identity = first.storeIdentity
        let held = try await Self.refusal { _ = try await Self.server(place, .source) }
        #expect(held.contains("one relay at a time"))
        await first.close()
        let end = try await Self.server(place, .source)
        let renewed = Result { try StoreMove.renew(end, identity: Data(repeating: 7, count: 16)) }
        await end.end()
        #expect(try renewed.get().problems == [])
        let store = try RelayStore.open(place, as: .forTests(), settings: .forTests)
        #expect(store.storeIdentity != identity)
        await store.close()
    }

    @Test func `an incomplete move cannot get a new identity`() async throws {
        let path = try FilledFiles.copy(try await FilledFiles.all()[0])
        let place = try TestPlace().place()
        await #expect(throws: Interruption.self) {
            try await Self.move(path, to: place, rows: 2) {
                if $0.table == "progress" { throw Interruption() }
            }
        }
        let end = try await Self.server(place, .source)
        let refusal = try await Self.refusal {
            _ = try StoreMove.renew(end, identity: Data(repeating: 7, count: 16))
        }
        await end.end()
        #expect(refusal.contains("run belfry move again to finish"))
    }

    @Test func `a running relay at either end is refused`() async throws {
        let path = try await Self.newStore()
        let place = try TestPlace().place()
        let relay = try RelayStore.open(place, as: .forTests(), settings: .forTests)
        let atTarget = try await Self.refusal { try await Self.move(path, to: place) }
        await relay.close()
        #expect(atTarget.contains("is in use by the relay test: one relay at a time"))
        let other = try RelayStore.open(path: path, settings: .forTests)
        let atSource = try await Self.refusal {
            try await Self.move(path, to: place, waits: false)
        }
        await other.close()
        #expect(atSource.contains("is in use by process"))
        // Neither end was changed. A schema that a relay has opened, but not used, still counts as
        // empty.
        try await Self.move(path, to: place)
    }

    @Test(arguments: [(1, "run belfry migrate first"), (999, "newer Belfry")])
    func `another version of the schema is refused`(version: Int, said: String) async throws {
        let path = try await Self.newStore()
        let queue = try DatabaseQueue(path: path)
        try await queue.write { try $0.execute(sql: "PRAGMA user_version = \(version)") }
        try queue.close()
        let place = try TestPlace().place()
        let refusal = try await Self.refusal { try await Self.move(path, to: place) }
        #expect(refusal.contains(said))
    }

    @Test func `a move that was killed while it created the schema continues`() async throws {
        let test = try TestPlace()
        let place = try test.place()
        let some = Array(Migration.releasedOnPostgreSQL.prefix(1))
        _ = try PostgresSchema(place: place, migrations: some)
            .apply(try test.session().connect(), makesSchema: true)
        let report = try await Self.move(try await Self.newStore(), to: place)
        #expect(report.problems == [])
    }

    @Test func `an older store on the server is refused`() async throws {
        let test = try TestPlace()
        let place = try test.place()
        let some = Array(Migration.releasedOnPostgreSQL.prefix(1))
        _ = try PostgresSchema(place: place, migrations: some)
            .apply(try test.session().connect(), makesSchema: true)
        try test.server.sql("UPDATE \(test.schema).ownership SET epoch = 3")
        let path = try await Self.newStore()
        let refusal = try await Self.refusal { try await Self.move(path, to: place) }
        #expect(refusal.contains("run belfry migrate first"))
        #expect(!refusal.contains("is moved"))
    }

    @Test func `a newer schema on the server is refused`() async throws {
        let place = try TestPlace()
        _ = try RelayStore.migrate(try place.place())
        try place.server.sql("INSERT INTO \(place.schema).migration VALUES (99, 'p0099', '')")
        let path = try await Self.newStore()
        let refusal = try await Self.refusal { try await Self.move(path, to: try place.place()) }
        #expect(refusal.contains("newer Belfry"))
    }

    @Test func `a server that does not let the role in is reported`() async throws {
        let path = try await Self.newStore()
        let place = try TestPlace().place(role: "nobody_here")
        let refusal = try await Self.refusal { try await Self.move(path, to: place) }
        #expect(refusal.contains("does not let the role log in"))
        try await RelayStore.open(path: path, settings: .forTests).close()
    }

    @Test func `moving a missing store is refused`() async throws {
        let path = try Self.newPath()
        let place = try TestPlace().place()
        #expect(
            try await Self.refusal { try await Self.move(path, to: place) }
                .contains("there is no store at"))
        #expect(
            try await Self.refusal { try await Self.move(place, to: path) }
                .contains("there is no store at"))
        #expect(!FileManager.default.fileExists(atPath: path))
    }
}
