import Foundation
import Synchronization

/// A real PostgreSQL server in a folder of its own, which ends with the test process.
package final class PostgresServer: Sendable {
    /// The folder of the server's programs.
    ///
    /// It is named by the environment variable `BELFRY_POSTGRESQL`, or else is that of the newest
    /// version that Debian's packages have installed. It is `nil` if there is none.
    package static let programs: String? = {
        if let named = ProcessInfo.processInfo.environment["BELFRY_POSTGRESQL"] { return named }
        let top = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: top)) ?? []
        return versions.compactMap(Int.init).max().map { "\(top)/\($0)/bin" }
            .flatMap { FileManager.default.fileExists(atPath: $0 + "/initdb") ? $0 : nil }
    }()

    package static let isInstalled = programs != nil

    /// Whether the server was built with TLS; some builds are without.
    package static let speaksTLS =
        programs.flatMap { programs in
            try? run([programs + "/pg_config", "--configure"]).contains("ssl")
        } ?? false

    /// Returns the server that most tests of following share.
    package static func shared() throws -> PostgresServer { try sharedResult.get() }
    private static let sharedResult = Result {
        try PostgresServer(["wal_level=logical", "max_wal_senders=40", "max_replication_slots=80"])
    }

    /// Returns the server for stores, with the settings that stores demand.
    package static func ofStores() throws -> PostgresServer { try storesResult.get() }
    private static let storesResult = Result {
        try PostgresServer(["fsync=on", "max_connections=300", "shared_buffers=64MB"])
    }

    /// Returns a server without logical replication.
    package static func plain() throws -> PostgresServer { try plainResult.get() }
    private static let plainResult = Result { try PostgresServer([]) }

    /// The folder of the server and its socket.
    package let folder: String
    private let port: Int
    private let names = Mutex(0)
    /// The standard input of the shell that watches over the server.
    ///
    /// It closes when this process ends, in whatever way, and then the shell stops the server.
    private let life = Pipe()

    /// Starts a server that listens on its socket, and on the loopback interface if the settings
    /// say so.
    ///
    /// Connections over TCP need a password.
    ///
    /// - Parameters:
    ///   - settings: Settings in addition to those of every test server.
    ///   - port: The port number, which also names the socket.
    ///   - original: The server of which this one is a standby.
    ///   - prepare: Called with the folder before the server starts, to put files into it.
    /// - Throws: ``PostgresTestFailure`` if the server does not start.
    package init(
        _ settings: [String], port: Int = 5432, copyOf original: PostgresServer? = nil,
        prepare: (_ folder: String) throws -> Void = { _ in }
    ) throws {
        self.port = port
        let programs = Self.programs ?? ""
        let place = MemoryFolder.path.map { $0 + "/" } ?? NSTemporaryDirectory()
        folder = place + "belfry-postgres-\(UInt64.random(in: 0...UInt64.max))"
        let folder = folder
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        // PostgreSQL refuses to run as root.
        let user = getuid() == 0 ? ["runuser", "-u", "postgres", "--"] : []
        if getuid() == 0 { try Self.run(["chown", "postgres", folder]) }
        if let original {
            try Self.run(
                user + [
                    programs + "/pg_basebackup", "-D", folder + "/data", "-R", "-N", "-c", "fast",
                    "-h", original.folder, "-p", "\(original.port)", "-U", "postgres",
                ])
        } else {
            try Self.run(
                user + [
                    programs + "/initdb", "-D", folder + "/data", "-N", "-E", "UTF8",
                    "--locale=C.UTF-8", "-U", "postgres", "--auth-local=trust",
                    "--auth-host=scram-sha-256",
                ])
        }
        try prepare(folder)
        let given = (["fsync=off", "port=\(port)", "listen_addresses="] + settings)
            .map { "-c \($0)" }.joined(separator: " ")
        let control = (user + [programs + "/pg_ctl", "-D", folder + "/data"])
            .joined(separator: " ")
        // The same shell starts and ends the server. Nobody waits for the shell with
        // `waitUntilExit`: the server inherits the descriptor that reports the end, so the wait
        // would last as long as the server.
        let keeper = Process()
        keeper.executableURL = URL(filePath: "/bin/sh")
        keeper.arguments = [
            "-c",
            """
            trap '' INT TERM
            exec 2>/dev/null
            \(control) -w -l \(folder)/log -o '\(given) -k \(folder)' start </dev/null >/dev/null
            echo $?; exec >/dev/null; cat >/dev/null
            \(control) -m immediate stop; rm -rf \(folder)
            """,
        ]
        let said = Pipe()
        keeper.standardInput = life
        keeper.standardOutput = said
        keeper.standardError = FileHandle.nullDevice
        try keeper.run()
        guard said.fileHandleForReading.availableData == Data("0\n".utf8) else {
            throw PostgresTestFailure(description: "the server in \(folder) did not start")
        }
    }

    /// Ends the server at once, as a machine does that fails.
    package func end() { try? life.fileHandleForWriting.close() }

    /// Makes a database, and returns its name, which is also that of its slot and publication.
    package func database(_ sql: String = "") throws -> String {
        let number = names.withLock { names in
            names += 1
            return names
        }
        let name = "d\(number)"
        try self.sql("CREATE DATABASE \(name)")
        if !sql.isEmpty { try self.sql(sql, in: name) }
        return name
    }

    /// Returns the connection string for `role`.
    package func url(_ database: String = "postgres", role: String = "postgres") -> String {
        "host=\(folder) user=\(role) dbname=\(database)"
    }

    /// Returns a schema name that is not in use on this server.
    package func schemaName() -> String {
        let number = names.withLock { names in
            names += 1
            return names
        }
        return "s\(number)"
    }

    /// Runs SQL with `psql`, and returns its output.
    @discardableResult
    package func sql(_ text: String, in database: String = "postgres") throws -> String {
        try Self.run([
            "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", folder, "-p",
            "\(port)", "-U", "postgres", "-d", database, "-c", text,
        ])
    }

    /// Repeats a query until its answer is `answer`, and lets other tasks run in between.
    package func wait(
        for answer: String, of question: String, in database: String = "postgres"
    ) async throws {
        while try sql(question, in: database) != answer {
            try Task.checkCancellation()
            await Turns.pass(5)
        }
    }

    @discardableResult package static func run(_ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        try? output.fileHandleForWriting.close()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let said = String(decoding: text, as: UTF8.self)
        guard process.terminationStatus == 0 else {
            throw PostgresTestFailure(description: arguments.joined(separator: " ") + ": " + said)
        }
        return said.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}

package struct PostgresTestFailure: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}
