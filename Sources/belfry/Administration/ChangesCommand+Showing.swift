import ArgumentParser
import RelayModel
import RelayServer

extension ChangesCommand {
    /// Shows one change with its consequences.
    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show a change: its images, what it fired, and what became of the pushes.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Argument(help: "The position of the change.") var position: UInt64
        @Option(help: "Explain the change for this user's subscriptions, even where it fired none.")
        var user: String?

        /// The maximum number of deliveries to show.
        private static let most = "50"
        /// The maximum number of subscriptions to explain, of those that deliveries were made for.
        private static let mostExplained = 10

        func run() async throws {
            try await options.run { client in
                let place = String(position)
                let change = try await client.make(
                    .showChange, container.parts(["position": place]))
                let deliveries = try await client.make(
                    .listContainerDeliveries, container.parts,
                    query: [("position", place), ("limit", Self.most)])
                let explained = try await self.explained(client, deliveries)
                var answer: JSONObject = ["change": change, "explained": explained]
                if case .object(let object) = deliveries {
                    answer["deliveries"] = object["deliveries"]
                    answer["before"] = object["before"]
                }
                let text = try Self.text(change, explained, deliveries)
                return CommandOutput(.object(answer), .text(text), remark: more(deliveries))
            }
        }

        /// Names the command that lists the deliveries that are not shown, if there may be more.
        private func more(_ deliveries: JSONValue) -> String? {
            guard case .string(let place)? = deliveries.member(["before"]) else { return nil }
            let name = container.container.map { " -c \($0) -e \(container.environment)" } ?? ""
            return "There may be more: belfry deliveries list\(name) --position \(position) "
                + "--before \(place)"
        }

        /// Explains the change for the named user's subscriptions, or else for those that
        /// deliveries were made for.
        private func explained(
            _ client: AdministrationClient, _ deliveries: JSONValue
        ) async throws -> JSONValue {
            let place = ("position", Optional(String(position)))
            if let user {
                return try await client.make(
                    .explain, container.parts, query: [place, ("user", user)])
            }
            var explanations: [JSONValue] = []
            let fired = Self.subscriptions(of: deliveries)
            for one in fired.prefix(Self.mostExplained) {
                do {
                    let answer = try await client.make(
                        .explain, container.parts,
                        query: [place, ("user", one.user), ("subscription", one.id)])
                    if case .array(let found)? = answer.member(["explanations"]) {
                        explanations += found
                    }
                } catch let failure as CommandFailure where failure.kind.concernsOne {
                    // The subscription no longer exists. Its deliveries are shown anyway.
                }
            }
            return [
                "sentence": .string(sentence(for: fired.count)),
                "explanations": .array(explanations), "others": .integer(0),
            ]
        }

        /// Returns the sentence above the explanations, if pushes were made for `count`
        /// subscriptions.
        private func sentence(for count: Int) -> String {
            switch count {
            case 0:
                "No push was made for it; belfry changes show \(position) --user USER says why."
            case ...Self.mostExplained: "Pushes were made for these subscriptions."
            default:
                "Pushes were made for \(count) subscriptions or more; of these, "
                    + "\(Self.mostExplained) are explained."
            }
        }

        /// Returns the subscriptions that deliveries were made for, each with its user, once each.
        private static func subscriptions(
            of deliveries: JSONValue
        ) -> [(user: String, id: String)] {
            guard case .array(let rows)? = deliveries.member(["deliveries"])
            else { return [] }
            var known: Set<[String]> = []
            return rows.compactMap { row in
                guard case .object(let row) = row, case .string(let user)? = row["userRecordName"],
                    case .string(let id)? = row["subscriptionID"],
                    known.insert([user, id]).inserted
                else { return nil }
                return (user, id)
            }
        }

        private static func text(
            _ change: JSONValue, _ explained: JSONValue, _ deliveries: JSONValue
        ) throws -> String {
            [
                CommandOutput(change, .json).text(asJSON: false),
                try ExplanationText(explained, showsSteps: false).text,
                "DELIVERIES\n"
                    + CommandOutput(deliveries, to: .listContainerDeliveries).text(asJSON: false),
            ].joined(separator: "\n\n")
        }
    }

    /// Follows changes as they arrive.
    struct Tail: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the last changes, and then new ones as they come, until you stop it.",
            discussion: """
                Each line has the position, the moment, the source, the operation and the record, \
                and says so if the change came too late and is stale. belfry listen shows what \
                changes fire. The command goes on by itself when the relay restarts.
                """)
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @Option(help: "How many of the last changes to begin with.") var lines = 10
        @Flag(help: "End after the last change instead of waiting for more.") var once = false

        /// The pause between two queries for new changes.
        private static let pause = Duration.milliseconds(500)
        /// The pause before asking a relay again that does not answer.
        private static let rest = Duration.seconds(1)

        func validate() throws {
            guard (0...1000).contains(lines) else {
                throw ValidationError("--lines must be from 0 to 1000")
            }
        }

        func run() async throws {
            try await CommandFailure.told {
                var progress = Progress()
                while true {
                    do {
                        return try await follow(&progress)
                    } catch let failure as CommandFailure
                        where failure.kind != .refused && progress.place != nil
                    {
                        // The log keeps its positions, so nothing is missed in the meantime.
                        guard options.database == nil, !once else { throw failure }
                        if !progress.isLost { note("the relay does not answer; trying again") }
                        progress.isLost = true
                        try await Task.sleep(for: Self.rest)
                    }
                }
            }
        }

        /// How far the command has read the log.
        private struct Progress {
            var place: String?
            /// The position of the last known change.
            var last: String?
            var isLost = false
        }

        private func follow(_ progress: inout Progress) async throws {
            var known = progress
            defer { progress = known }
            try await options.withClient { client in
                if known.isLost, let last = known.last, try await ends(client, before: last) {
                    note("the log now ends before the changes that were shown; starting again")
                    known.place = nil
                }
                if known.place == nil {
                    known.place = try await begin(client)
                    known.last = known.place
                }
                while !once, let place = known.place {
                    let step = try await goOn(client, after: place)
                    known.place = step.place
                    known.last = step.last ?? known.last
                    if known.isLost { note("the relay answers again") }
                    known.isLost = false
                    try await Task.sleep(for: Self.pause)
                }
            }
        }

        /// Prints a remark on the standard error.
        private func note(_ text: String) {
            try? StandardStreams.write(Array("(\(text))\n".utf8), .error)
        }

        /// Shows the last changes; returns the position after which to continue.
        private func begin(_ client: AdministrationClient) async throws -> String {
            let answer = try await client.make(
                .listChanges, container.parts, query: [("limit", String(max(1, lines)))])
            let changes = Self.changes(in: answer)
            for change in changes.prefix(lines).reversed() { try show(change) }
            return changes.first.flatMap(Self.position) ?? "0"
        }

        /// Returns whether the log was replaced by a shorter one, such as that of a sandbox without
        /// a kept folder.
        private func ends(
            _ client: AdministrationClient, before last: String
        ) async throws -> Bool {
            let answer = try await client.make(
                .listChanges, container.parts, query: [("limit", "1")])
            let newest = Self.changes(in: answer).first.flatMap(Self.position) ?? "0"
            guard let end = UInt64(newest), let shown = UInt64(last) else { return false }
            return end < shown
        }

        /// Shows new changes; returns the position at which to continue, and that of the last
        /// change, if any.
        private func goOn(
            _ client: AdministrationClient, after place: String
        ) async throws -> (place: String, last: String?) {
            let answer = try await client.make(
                .listChanges, container.parts, query: [("after", place), ("limit", "1000")])
            let changes = Self.changes(in: answer)
            for change in changes { try show(change) }
            let last = changes.last.flatMap(Self.position)
            if case .object(let object) = answer, case .string(let next)? = object["after"] {
                return (next, last)
            }
            return (last ?? place, last)
        }

        private func show(_ change: JSONValue) throws {
            let line: String
            if options.json {
                line = ShownText.json(change.text)
            } else {
                let paths = [
                    ["position"], ["appendedAt"], ["source"], ["change", "op"], ["change", "type"],
                    ["change", "name"],
                ]
                let cells = paths.map {
                    CommandOutput.shown(change.member($0))
                }
                let isStale = change.member(["stale"]) == true
                line =
                    cells.prefix(4).joined(separator: "  ") + "  \(cells[4])/\(cells[5])"
                    + (isStale ? "  stale" : "")
            }
            try StandardStreams.write(Array(ShownText.plain("\(line)\n").utf8), .output)
        }

        private static func changes(in answer: JSONValue) -> [JSONValue] {
            guard case .object(let object) = answer, case .array(let changes)? = object["changes"]
            else { return [] }
            return changes
        }

        private static func position(of change: JSONValue) -> String? {
            guard case .string(let position)? = change.member(["position"])
            else { return nil }
            return position
        }
    }
}
