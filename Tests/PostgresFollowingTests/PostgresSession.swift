import Foundation
import RelayTestKit

/// A session that stays open between statements, so that a transaction can stay open.
final class PostgresSession {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    init(_ server: PostgresServer, _ database: String, role: String = "postgres") throws {
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", server.folder, "-U",
            role, "-d", database,
        ]
        process.standardInput = input
        process.standardOutput = output
        process.standardError = output
        try process.run()
    }

    /// Runs SQL and returns when it is done.
    func run(_ sql: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data("\(sql);\n\\echo done\n".utf8))
        var said = ""
        while !said.hasSuffix("done\n") {
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { throw PostgresTestFailure(description: sql + ": " + said) }
            said += String(decoding: data, as: UTF8.self)
        }
    }

    /// Ends the session; an open transaction is rolled back.
    func end() {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }
}
