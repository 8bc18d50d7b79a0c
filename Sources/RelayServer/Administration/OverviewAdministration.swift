import ChangeSources
import Delivery
import RelayModel
import Storage

/// The overview of the relay, and the list of what needs attention.
struct OverviewAdministration: AdministrationTable {
    let registry: any ContainerRegistry & SourceRegistry
    let log: any ShardLog
    let progress: any ShardProgress
    /// Returns what is owed besides the log: retries, ranges and quarantined changes.
    let backlog: @Sendable () async throws -> Backlog
    /// The halts in force: what is not sent, and why.
    let halts: @Sendable () -> [HaltInForce]
    /// The intake limits that are reached, each with a sentence for the operator.
    let boundsReached: @Sendable () -> [IntakeBound: String]
    /// The outcomes of webhooks.
    let ledger: SourceLedger
    /// The decoded change sources.
    let decoded: SourceMemory
    /// The followers of the sources' databases; `nil` if no relay runs.
    let followers: SourceFollowers?
    /// The push gateway's answers to each container.
    let answers: @Sendable () -> [ContainerKey: GatewayAnswers]
    /// The health of the process: readiness, disk, backup, certificate.
    let health: @Sendable () async -> RelayHealth
    /// The shards of the service; `nil` if the store is the only one.
    let shards: ShardAccess?
    /// The relay's clock, and the time by this clock at which the relay was started.
    let now: @Sendable () -> Timestamp
    let startedAt: Timestamp

    /// The largest exact count; higher ones read "1000 or more".
    private static let countLimit = 1000

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.overview, respond: overview),
            AdministrationRoute(.showAttention, respond: attention),
            AdministrationRoute(.showContainerAttention, respond: attentionOfContainer),
        ]
    }

    private func overview(_ request: RelayRequest) async throws -> RelayAnswer {
        RelayAnswer(json: .object(try await overview()))
    }

    /// Shows what needs attention, judged in the same way as by the command `doctor`.
    private func attention(_ request: RelayRequest) async throws -> RelayAnswer {
        RelayAnswer(json: checkup(try await overview()).diagnosis.json)
    }

    /// Shows what needs attention in one container.
    private func attentionOfContainer(_ request: RelayRequest) async throws -> RelayAnswer {
        let settings = try await registry.settings(in: request)
        let known: JSONObject = [
            "now": .string(now().iso8601), "startedAt": .string(startedAt.iso8601),
            "halts": halts().json(of: settings.key),
            "containers": [try await summary(settings, answers()[settings.key])],
        ]
        return RelayAnswer(json: checkup(known).diagnosisOfContainers.json)
    }

    private func checkup(_ overview: JSONObject) -> Checkup {
        var checkup = Checkup(overview: .object(overview), now: now(), isRunning: true)
        checkup.isOwn = true
        return checkup
    }

    private func overview() async throws -> JSONObject {
        let head = try await log.head()
        let mark = try await progress.mark()
        var containers: [JSONValue] = []
        let answers = answers()
        for settings in try await registry.containers() {
            containers.append(try await summary(settings, answers[settings.key]))
        }
        let health = await health()
        let behind = head.rawValue - min(head.rawValue, mark.position.rawValue)
        let backlog = try await backlog()
        return [
            "now": .string(now().iso8601),
            "startedAt": .string(startedAt.iso8601),
            "notReady": health.unready,
            "disk": health.disk,
            "tls": health.tls,
            "nodes": health.nodes,
            "disagreements": health.disagreements,
            "shards": shardStandings,
            "backup": health.backups,
            "ranges": .integer(Int64(backlog.ranges)),
            "rangeSubscriptions": .integer(Int64(backlog.rangeSubscriptions)),
            "retries": .integer(Int64(backlog.retries)),
            "quarantined": .integer(Int64(backlog.quarantined)),
            "setAside": Self.json(backlog.newestSetAside),
            "difference": health.accounts,
            "unreadableRows": .integer(Int64(health.unreadableRows)),
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
        ]
    }

    /// Returns the JSON of the change that was set aside last; null if there is none.
    private static func json(_ change: SetAsideChange?) -> JSONValue {
        guard let change else { return .null }
        return [
            "container": .string(change.container.container.rawValue),
            "environment": .string(change.container.environment.rawValue),
            "position": .string(change.position.description), "reason": .string(change.reason),
        ]
    }

    /// The state of each shard; null if the store is the only one.
    private var shardStandings: JSONValue {
        guard let shards else { return .null }
        return .array(shards.standings().map { .object(AdministrationRows.shard.json($0)) })
    }

    private func summary(
        _ settings: ContainerSettings, _ answers: GatewayAnswers?
    ) async throws -> JSONValue {
        let limit = Self.countLimit
        let key = settings.key
        let counts = try await registry.rowCounts(of: key, limit: limit)
        return [
            "container": .string(key.container.rawValue),
            "environment": .string(key.environment.rawValue),
            "canSend": .string(SendingState(settings, answers).rawValue),
            "credential": settings.credentialJSON,
            "gateway": .object((answers ?? GatewayAnswers()).json),
            "canSignIn": .bool(settings.userTokens != nil),
            "devices": .integer(Int64(counts.devices)),
            "parked": .integer(Int64(counts.parked)),
            "retries": .integer(Int64(counts.retries)),
            "deadLetters": .integer(Int64(counts.deadLetters)),
            "webhooks": .object(
                webhooks(of: key, try await registry.sources(of: key))),
        ]
    }

    /// Returns the state of following a source's database; `nil` if the relay follows none for it.
    private func following(_ stored: StoredSource, among all: [StoredSource]) -> JSONValue? {
        guard let source = try? decoded.source(stored, among: all), source.follow != nil else {
            return nil
        }
        let place = SourcePlace(container: stored.container, source: stored.name)
        return .object((followers?.standing(of: place) ?? .stopped).json)
    }

    /// Returns the outcomes of webhooks, in total and for each source.
    private func webhooks(of key: ContainerKey, _ sources: [StoredSource]) -> JSONObject {
        let tallies = ledger.tallies(of: key)
        var sum = SourceLedger.Tally()
        for tally in tallies.values { sum.add(tally) }
        var object = sum.json
        object["sources"] = .array(
            sources.map { source in
                var row: JSONObject = [
                    "name": .string(source.name.rawValue),
                    "savedAt": .string(source.savedAt.iso8601),
                ]
                row.members += (tallies[source.name] ?? SourceLedger.Tally()).json.members
                row["following"] = following(source, among: sources)
                return .object(row)
            })
        return object
    }
}
