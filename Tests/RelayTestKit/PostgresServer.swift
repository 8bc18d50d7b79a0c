import Foundation
import Synchronization

/// A real server, in a folder of its own; it ends with the test process.
package final class PostgresServer: Sendable {
    /// Where the programs are: those that the environment names, or else the newest that Debian has
    /// installed; `nil` where there are none.
    package static let programs: String? = {
        if let named = ProcessInfo.processInfo.environment["BELFRY_POSTGRESQL"] { return named }
        let top = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: top)) ?? []
        return versions.compactMap(Int.init).max().map { "\(top)/\($0)/bin" }
            .flatMap { FileManager.default.fileExists(atPath: $0 + "/initdb") ? $0 : nil }
    }()

    package static let isInstalled = programs != nil

    /// Whether it was built with TLS, which not everybody's is.
    package static let speaksTLS =
        programs.flatMap { programs in
            try? run([programs + "/pg_config", "--configure"]).contains("ssl")
        } ?? false

    /// The server that most tests of following share.
    package static func shared() throws -> PostgresServer { try sharedResult.get() }
    private static let sharedResult = Result {
        try PostgresServer(["wal_level=logical", "max_wal_senders=40", "max_replication_slots=80"])
    }

    /// The server on which stores are, with the settings that they demand.
    package static func ofStores() throws -> PostgresServer { try storesResult.get() }
    private static let storesResult = Result {
        try PostgresServer(["fsync=on", "max_connections=300", "shared_buffers=64MB"])
    }

    /// A server that has no logical log.
    package static func plain() throws -> PostgresServer { try plainResult.get() }
    private static let plainResult = Result { try PostgresServer([]) }

    /// Where its socket is.
    package let folder: String
    private let port: Int
    private let names = Mutex(0)
    /// Closed when this process ends, however it ends: whoever reads it ends the server.
    private let life = Pipe()

    /// Starts a server, which only its socket and 127.0.0.1 reach; the latter asks for passwords.
    ///
    /// - Parameters:
    ///   - settings: beside those of every test server.
    ///   - port: on the loopback interface, where the settings have it listen there.
    ///   - original: the server that it is a standby of.
    ///   - prepare: puts files into its folder before it starts.
    /// - Throws: ``PostgresTestFailure`` if it does not start.
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
        // Who starts it also ends it. It is no child that is waited for: that would wait for the
        // server, which inherits what tells of a child's end.
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

    /// Ends the server, as a machine that fails does.
    package func end() { try? life.fileHandleForWriting.close() }

    /// Makes a database, and returns its name, which also names its slot and publication.
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

    /// Where the server is for whoever connects as `role`.
    package func url(_ database: String = "postgres", role: String = "postgres") -> String {
        "host=\(folder) user=\(role) dbname=\(database)"
    }

    /// A name that no other schema of this server has.
    package func schemaName() -> String {
        let number = names.withLock { names in
            names += 1
            return names
        }
        return "s\(number)"
    }

    /// Runs SQL, and returns what it prints.
    @discardableResult
    package func sql(_ text: String, in database: String = "postgres") throws -> String {
        try Self.run([
            "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", folder, "-p",
            "\(port)", "-U", "postgres", "-d", database, "-c", text,
        ])
    }

    /// Asks until the answer is `answer`; others, by whom it may become so, go on meanwhile.
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
