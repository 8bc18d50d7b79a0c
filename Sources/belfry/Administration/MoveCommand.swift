import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer
import Storage
import StoragePostgreSQL
import StorageSQL
import StorageSQLite

/// Moves a store to another engine.
struct MoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Move a whole store between a file and a PostgreSQL database.",
        discussion: """
            No relay may be running on either store. The target must be empty; if it is missing, \
            it is made. A move that was cut off goes on when you run the command again; until it \
            is done, no relay starts on either store. At the end the command compares both row by \
            row and checks the target. The source stays as it is, and is marked as moved; \
            --take-back makes a store of it again, with an identity of its own.
            """)

    @Option(help: "The relay's file, or the URL of its database.") var from: String
    @Option(help: "The file to make, or the URL of the database.") var to: String?
    @Option(help: "The schema of the database that is moved (default: belfry).")
    var fromSchema: String?
    @Option(help: "The schema to make (default: belfry).") var toSchema: String?
    @Flag(help: "Make a store again of what was moved away, and move nothing.")
    var takeBack = false
    @Flag(help: "Show JSON.") var json = false

    func validate() throws {
        guard takeBack == (to == nil) else {
            throw ValidationError("give either --to or --take-back")
        }
        try NamedStore.check(fromSchema, of: from, called: "--from-schema")
        if let to { try NamedStore.check(toSchema, of: to, called: "--to-schema") }
        if takeBack, toSchema != nil {
            throw ValidationError("--to-schema needs --to")
        }
        guard let to, !NamedStore.isServer(from), !NamedStore.isServer(to) else { return }
        throw ValidationError(
            "one of the two must be a database; belfry backup and restore copy files")
    }

    func run() async throws {
        if let point = ProcessInfo.processInfo.environment["BELFRY_CRASH_AT"] {
            do { try CrashPoint.arm(point) } catch {
                throw CommandFailure(.configuration, "\(error)")
            }
        }
        // A URL may contain a password. Such a URL is refused, and must not be repeated.
        var name = NamedStore.shown(from)
        do {
            let source = try NamedStore(from, schema: fromSchema)
            name = "\(source)"
            guard let to else { return try await takeBack(source) }
            let target = try NamedStore(to, schema: toSchema)
            if case (.server(let one), .server(let other)) = (source, target), one == other {
                throw ValidationError("--from and --to name the same store, \(source)")
            }
            try await move(source, target)
        } catch let error as StorageError {
            throw CommandFailure.storage("\(name) cannot be moved", error)
        }
    }

    private func takeBack(_ source: NamedStore) async throws {
        let end = try await source.moveEnd(isTarget: false)
        let identity = Data(World.real.randomBytes(16))
        let taken = Result { try StoreMove.takeBack(end, identity: identity) }
        await end.end()
        try taken.get()
        print(
            json
                ? JSONValue.object(["takenBack": .string("\(source)")]).text
                : "\(source) is a store again, with an identity of its own")
    }

    private func move(_ source: NamedStore, _ target: NamedStore) async throws {
        let from = try await source.moveEnd(isTarget: false)
        let moved: Result<MoveReport, any Error>
        do {
            let to = try await target.moveEnd(isTarget: true)
            let line = MoveLine()
            moved = Result { try StoreMove(from: from, to: to, tell: line.tell).run() }
            await to.end()
        } catch {
            moved = .failure(error)
        }
        await from.end()
        show(try moved.get(), source, target)
    }

    private func show(_ report: MoveReport, _ source: NamedStore, _ target: NamedStore) {
        let rows = report.tables.reduce(0) { $0 + $1.sum.rows }
        if json {
            let tables = report.tables.map { table in
                JSONValue.object([
                    "name": .string(table.name), "rows": .integer(table.sum.rows),
                    "sum": .string(table.sum.text),
                ])
            }
            print(
                JSONValue.object([
                    "from": .string("\(source)"), "to": .string("\(target)"),
                    "rows": .integer(rows), "tables": .array(tables),
                    "problems": .array(report.problems.map { .string($0) }),
                ]).text)
            return
        }
        for problem in report.problems { print("PROBLEM, as before: \(problem)") }
        print(
            "moved \(source) to \(target): \(Counted.text(rows, "row")) in "
                + "\(Counted.text(report.tables.count, "table")), equal at both ends"
                + (report.problems.isEmpty ? ", sound" : ""))
    }
}

/// Reports the progress of a move on the standard error, at most once a second.
private final class MoveLine {
    private var told: ContinuousClock.Instant?

    func tell(_ progress: MoveProgress) {
        guard progress.step == .checking || !progress.table.isEmpty else { return }
        let now = ContinuousClock.now
        if let told, told.duration(to: now) < .seconds(1) { return }
        told = now
        let rows = progress.step == .copying ? ", \(progress.rows) rows" : ""
        let line = "\(progress.step.rawValue) \(progress.table)\(rows)\n"
        try? StandardStreams.write(Array(line.utf8), .error)
    }
}

extension NamedStore {
    /// Opens the store as an end of a move.
    func moveEnd(isTarget: Bool) async throws -> any MoveEnd {
        switch self {
        case .file(let path):
            return try EmbeddedMoveEnd(path, as: isTarget ? .target : .source)
        case .server(let place):
            let claimant = StoreClaimant(
                name: World.real.machine, identity: World.real.randomBytes(16), isMove: true)
            return try await ServerMoveEnd.open(
                place, as: isTarget ? .target : .source, claimant
            ) { try await World.real.clock.sleep(for: .seconds(1)) }
        }
    }
}
