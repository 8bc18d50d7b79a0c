import Delivery
import RelayModel
import Storage

/// What an operator wants to see first.
struct OverviewAdministration: AdministrationTable {
    let registry: any ContainerRegistry
    let log: any ShardLog
    let progress: any ShardProgress
    /// What is owed besides the log.
    let backlog: @Sendable () async throws -> Backlog
    /// What waits, and why.
    let halts: @Sendable () -> [HaltInForce]
    /// The bounds that are reached, each with what people should know.
    let boundsReached: @Sendable () -> [IntakeBound: String]
    /// What became of webhooks.
    let ledger: SourceLedger

    /// Beyond this many, a count reads "1000 or more".
    private static let countLimit = 1000

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.overview, respond: overview)
        ]
    }

    private func overview(_ request: RelayRequest) async throws -> RelayAnswer {
        let head = try await log.head()
        let mark = try await progress.mark()
        var containers: [JSONValue] = []
        for settings in try await registry.containers() {
            containers.append(try await summary(settings))
        }
        let behind = head.rawValue - min(head.rawValue, mark.position.rawValue)
        let backlog = try await backlog()
        return RelayAnswer(json: [
            "ranges": .integer(Int64(backlog.ranges)),
            "rangeSubscriptions": .integer(Int64(backlog.rangeSubscriptions)),
            "retries": .integer(Int64(backlog.retries)),
            "quarantined": .integer(Int64(backlog.quarantined)),
            "halts": halts().json(),
            "refusing": .object(
                JSONObject(
                    boundsReached().map { ($0.key.rawValue, .string($0.value)) }
                        .sorted { $0.0 < $1.0 })),
            "head": .string(head.description),
            "progress": .string(mark.position.description),
            "behind": .string(String(behind)),
            "countLimit": .integer(Int64(Self.countLimit)),
            "containers": .array(containers),
        ])
    }

    private func summary(_ settings: ContainerSettings) async throws -> JSONValue {
        let limit = Self.countLimit
        let key = settings.key
        let counts = try await registry.rowCounts(of: key, limit: limit)
        return [
            "container": .string(key.container.rawValue),
            "environment": .string(key.environment.rawValue),
            "canSend": .bool(settings.credential != nil || settings.certificate != nil),
            "canSignIn": .bool(settings.userTokens != nil),
            "devices": .integer(Int64(counts.devices)),
            "parked": .integer(Int64(counts.parked)),
            "retries": .integer(Int64(counts.retries)),
            "deadLetters": .integer(Int64(counts.deadLetters)),
            "webhooks": .object(webhooks(of: key)),
        ]
    }

    /// What became of the webhooks of all sources, and of each that posted anything.
    private func webhooks(of key: ContainerKey) -> JSONObject {
        let tallies = ledger.tallies(of: key).sorted { $0.key.rawValue < $1.key.rawValue }
        var sum = SourceLedger.Tally()
        for (_, tally) in tallies { sum.add(tally) }
        var object = sum.json
        object["sources"] = .array(
            tallies.map { name, tally in
                var row: JSONObject = ["name": .string(name.rawValue)]
                row.members += tally.json.members
                return .object(row)
            })
        return object
    }
}
