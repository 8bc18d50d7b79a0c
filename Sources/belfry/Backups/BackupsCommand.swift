import ArgumentParser
import LogShipping
import RelayModel

/// The continuous backups, and whether they are complete.
struct BackupsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backups", abstract: "List and verify continuous backups.",
        subcommands: [List.self, Verify.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the copies, and from when to when each can be restored.",
            discussion: """
                Each entry is a copy of the file and the log since then: belfry restore --from URL \
                --at MOMENT can restore any moment between the two. The command exits with 1 if \
                there is no copy, if a segment or a part of a copy is missing, or if a segment is \
                there more than once, which means that two relays ship there. belfry backups \
                verify also reads the copies and segments.
                """)

        @Argument(help: "Where the backups are: file:///FOLDER or s3://BUCKET/PREFIX.")
        var url: String
        @Option(
            help: "The configuration file, with the settings of an S3-like store.",
            completion: .file())
        var config: String?
        @Flag(help: "Show JSON.") var json = false

        func run() async throws {
            let destination = try await BackupAccess.destination(url, config: config)
            let rows = try await BackupAccess.told(destination) {
                let reading = BackupReading(destination)
                let catalogue = try await reading.catalogue()
                var rows: [Row] = []
                for base in catalogue.bases {
                    let lack = try await reading.lack(of: base, in: catalogue)
                    var row = Row(base, catalogue.end(of: base), lacking: lack)
                    row.doubled = catalogue.doubled(of: base)
                    rows.append(row)
                }
                return rows
            }
            if json {
                print(JSONValue.object(["backups": .array(rows.map(\.json))]).text)
            } else {
                print(
                    rows.isEmpty
                        ? "There is no whole copy at \(destination.place)."
                        : rows.map(\.line).joined(separator: "\n"))
            }
            if rows.isEmpty || rows.contains(where: \.isWrong) { throw ExitCode.failure }
        }
    }

    struct Verify: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Read all backups, and name what is damaged or missing.",
            discussion: """
                The command reads every copy and the log since then, and writes nothing. It exits \
                with 1 if something is damaged or missing.
                """)

        @Argument(help: "Where the backups are: file:///FOLDER or s3://BUCKET/PREFIX.")
        var url: String
        @Option(
            help: "The configuration file, with the settings of an S3-like store.",
            completion: .file())
        var config: String?
        @Flag(help: "Show JSON.") var json = false

        func run() async throws {
            let destination = try await BackupAccess.destination(url, config: config)
            let found = try await BackupAccess.told(destination) {
                try await BackupVerification(of: destination)
            }
            if json {
                let object: JSONObject = [
                    "copies": .integer(Int64(found.copies)),
                    "segments": .integer(Int64(found.segments)),
                    "bytes": .integer(Int64(found.bytes)),
                    "problems": .array(found.problems.map { .string($0) }),
                ]
                print(JSONValue.object(object).text)
            } else {
                let verdict =
                    found.problems.isEmpty
                    ? "sound" : Counted.text(found.problems.count, "problem")
                let read = Counted.text(found.copies, "copy", "copies")
                let segments = Counted.text(found.segments, "segment")
                print("read \(read) and \(segments), \(found.bytes) bytes: \(verdict)")
                for problem in found.problems { print(problem) }
            }
            if !found.problems.isEmpty { throw ExitCode.failure }
        }
    }

    /// A copy and the log since then.
    private struct Row {
        let base: Catalogue.Base
        let end: Timestamp?
        let missing: UInt64?
        /// What is missing or damaged in the copy itself.
        let lack: BackupRefusal?
        /// The first number under which several segments were shipped.
        var doubled: UInt64?

        var isWrong: Bool { missing != nil || lack != nil || doubled != nil }

        init(
            _ base: Catalogue.Base, _ end: (moment: Timestamp, missing: UInt64?)?,
            lacking lack: BackupRefusal?
        ) {
            self.base = base
            self.lack = lack
            self.end = lack == nil ? end?.moment : nil
            missing = end.map(\.missing) ?? base.reach.last
        }

        var line: String {
            let from = base.reach.moment.iso8601
            let reach = end.map { "from \(from) to \($0.iso8601)" } ?? "not whole"
            let notes: [String?] = [
                missing.map { "  SEGMENT \($0) IS MISSING" },
                doubled.map { "  SEGMENT \($0) IS THERE MORE THAN ONCE" },
                lack.map { "  CANNOT BE RESTORED: \($0)" },
            ]
            return "\(base.chain)  copy \(base.number)  \(reach)"
                + notes.compactMap(\.self).joined()
        }

        var json: JSONValue {
            var object: JSONObject = [
                "chain": .string(base.chain), "copy": .integer(Int64(base.number)),
                "from": .string(base.reach.moment.iso8601),
            ]
            object["to"] = end.map { .string($0.iso8601) }
            object["missingSegment"] = missing.map { .integer(Int64($0)) }
            object["doubledSegment"] = doubled.map { .integer(Int64($0)) }
            object["problem"] = lack.map { .string($0.description) }
            return .object(object)
        }
    }
}
