import ArgumentParser
import RelayModel
import RelayServer

/// Deliveries and their outcomes.
struct DeliveriesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deliveries",
        abstract: """
            List and show deliveries, receipts, retries and dead letters; redrive and drop dead \
            letters.
            """,
        subcommands: [
            List.self, Show.self, Receipts.self, Retries.self, DeadLetters.self, Redrive.self,
            Drop.self,
        ])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List deliveries and what became of them, the newest first.")
        @OptionGroup var options: AdministrationOptions
        @Option(help: "Only those of the change at this position.") var position: UInt64?
        @Option(help: "Only those of the subscription with this serial.")
        var subscriptionSerial: UInt64?
        @Option(help: "Only those of the device with this serial.") var deviceSerial: UInt64?
        @Option(help: "In this state: delivered, waiting, dead, seen or folded (told with others).")
        var state: String?
        @OptionGroup var names: NamedContainerOptions
        @OptionGroup var page: PageOptions

        func run() async throws {
            let query = [
                ("position", position.map(String.init)),
                ("subscriptionSerial", subscriptionSerial.map(String.init)),
                ("deviceSerial", deviceSerial.map(String.init)), ("state", state),
            ]
            if let container = names.parts {
                try await options.list(
                    .listContainerDeliveries, container,
                    query: query + names.deliveries.query + page.query)
            } else {
                try await options.list(.listDeliveries, query: query + page.query)
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show what became of one delivery, with all its attempts, the oldest first.")
        @OptionGroup var options: AdministrationOptions
        @Argument(help: "The delivery (its apns-id).") var id: String

        func run() async throws {
            try await options.run { client in
                let answer = try await client.make(.showDelivery, ["delivery": id])
                return CommandOutput(answer, to: .showDelivery, remark: Self.remark(answer))
            }
        }

        private static func remark(_ answer: JSONValue) -> String? {
            guard case .object(let object) = answer, case .string(let state)? = object["state"],
                case .string(let position)? = object["position"]
            else { return nil }
            var text = "Owed by the change at position \(position); it is \(state)"
            if case .object(let retry)? = object["retry"], case .string(let due)? = retry["dueAt"] {
                text += ", and due at \(due)"
            }
            return text + "."
        }
    }

    struct Receipts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List attempts with their outcomes, the newest first.")
        @OptionGroup var options: AdministrationOptions
        @Option(help: "Only those of this delivery (its apns-id).") var deliveryID: String?
        @Option(help: "Only those of the change at this position.") var position: UInt64?
        @Option(help: "Only those of the subscription with this serial.")
        var subscriptionSerial: UInt64?
        @Option(help: "Only those of the device with this serial.") var deviceSerial: UInt64?
        @Option(help: "Only those with this outcome: accepted, deferred, unregistered or dead.")
        var outcome: String?
        @OptionGroup var names: NamedContainerOptions
        @OptionGroup var page: PageOptions

        func validate() throws {
            guard names.container != nil || names.deliveries.isEmpty else {
                throw ValidationError("--container is needed with --user and --record")
            }
        }

        func run() async throws {
            try await options.list(
                .listReceipts,
                query: [
                    ("deliveryID", deliveryID), ("position", position.map(String.init)),
                    ("subscriptionSerial", subscriptionSerial.map(String.init)),
                    ("deviceSerial", deviceSerial.map(String.init)), ("outcome", outcome),
                ] + names.query + page.query)
        }
    }

    struct Retries: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "List deliveries that wait to be tried again, those of the newest changes first.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @OptionGroup var list: ReasonedListOptions

        func run() async throws {
            try await options.list(.listRetries, container.parts, query: list.query)
        }
    }

    struct DeadLetters: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "dead-letters",
            abstract: "List deliveries that ended without success, the newest first.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @OptionGroup var list: ReasonedListOptions

        func run() async throws {
            try await options.list(.listDeadLetters, container.parts, query: list.query)
        }
    }

    struct Redrive: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Turn dead letters into retries that are due at once.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @OptionGroup var choice: DeadLetterOptions

        func run() async throws {
            try await options.make(.redriveDeadLetters, container.parts, body: choice.body)
        }
    }

    struct Drop: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Delete dead letters for good.")
        @OptionGroup var options: AdministrationOptions
        @OptionGroup var container: UsualContainerOptions
        @OptionGroup var choice: DeadLetterOptions

        func run() async throws {
            try await options.make(.dropDeadLetters, container.parts, body: choice.body)
        }
    }
}

/// The selection of dead letters.
struct DeadLetterOptions: ParsableArguments {
    @Argument(help: "The deliveries (their apns-ids).") var ids: [String] = []
    @Option(help: "Those with this reason.") var reason: String?
    @Flag(help: "All of them.") var all = false

    func validate() throws {
        guard !ids.isEmpty || reason != nil || all else {
            throw ValidationError("name deliveries, or give --reason or --all")
        }
        guard !all || ids.isEmpty && reason == nil else {
            throw ValidationError("--all means all dead letters: leave out deliveries and --reason")
        }
    }

    var body: JSONValue {
        var body = JSONObject()
        if !ids.isEmpty { body["ids"] = .array(ids.map { .string($0) }) }
        body["reason"] = reason.map { .string($0) }
        if all { body["all"] = true }
        return .object(body)
    }
}

/// The selection of deliveries that did not simply succeed.
struct ReasonedListOptions: ParsableArguments {
    @OptionGroup var deliveries: DeliveryOptions
    @Option(help: "Those with this reason.") var reason: String?
    @OptionGroup var page: PageOptions

    var query: [(String, String?)] {
        deliveries.query + [("reason", reason)] + page.query
    }
}

/// The selection of deliveries, and the container that its names belong to.
struct NamedContainerOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: "Only those of this container; needed with --user and --record.")
    var container: String?
    @Option(
        name: .shortAndLong, help: "Its environment (default: development).",
        completion: .list(["development", "production"]))
    var environment: String?
    @OptionGroup var deliveries: DeliveryOptions

    func validate() throws {
        guard container != nil || environment == nil else {
            throw ValidationError(
                "--environment needs --container: without one, a list is of all containers")
        }
    }

    /// The parts of the path of a call about the container; `nil` for all containers.
    ///
    /// Without a container, the names of a user or record are looked up in that of a running
    /// `belfry dev`.
    var parts: [String: String]? {
        guard container != nil || !deliveries.isEmpty else { return nil }
        var parts = ["environment": environment ?? "development"]
        parts["container"] = container
        return parts
    }

    var query: [(String, String?)] {
        guard let container else { return [] }
        return [("container", container), ("environment", environment ?? "development")]
            + deliveries.query
    }
}
