import ChangeSources
import Fanout
package import RelayModel
import Storage

/// Rehearses a draft by changes that no relay has: those of a file, in the form in which the preset
/// `belfry` takes them.
///
/// There is no log, and there are no readers but those that changes name; a device is made up, so
/// that there is a push to be seen. Pure.
package struct FileRehearsal {
    /// Changes that are kept, to be judged from the newest back.
    package static let mostChanges = 200_000

    private let subject: RehearseService.Subject
    private let settings: ContainerSettings
    private let source: ChangeSource
    private let examples: Int
    private let now: Timestamp
    private var changes: [LoggedPastChange] = []

    /// Prepares to rehearse `draft` as a subscription of `user`; a change that says no moment
    /// counts as of `now`.
    ///
    /// - Throws: 400 as a save would answer.
    package init(
        of draft: JSONValue, user: UserID, database: DatabaseScope, container: ContainerKey,
        examples: Int, at now: Timestamp
    ) throws(APIError) {
        guard let name = SourceName(rawValue: "file") else {
            preconditionFailure("a source name that is one")
        }
        let owner = SubscriptionOwner(container: container, database: database, user: user)
        do {
            subject = try Self.subject(draft, of: owner)
        } catch {
            throw ErrorMapping(error).apiError
        }
        settings = ContainerSettings(key: container, topics: ["file"])
        source = ChangeSource(
            name: name, preset: .belfry, verification: SourceVerification(.none))
        self.examples = examples
        self.now = now
    }

    private static func subject(
        _ draft: JSONValue, of owner: SubscriptionOwner
    ) throws -> RehearseService.Subject {
        let reading = SubscriptionOperationReading(
            owner: owner, limits: RequestLimits(), schema: ContainerSchema(),
            assignedID: "draft")
        let subscription = try reading.subscription(
            try JSONReader(draft, path: "subscription"))
        return RehearseService.Subject(
            subscription: subscription,
            cost: try PredicateScales(indexes: IndexDirectory(), limits: CostLimits())
                .weigh(subscription, path: "subscription"))
    }

    /// Takes one change, which came after those before.
    ///
    /// - Throws: 400 that says what is wrong with it, or that there are too many.
    package mutating func take(_ body: [UInt8]) throws {
        guard changes.count < Self.mostChanges else {
            throw APIError(
                .badRequest, "there are more changes than the \(Self.mostChanges) of a file")
        }
        let batch: DecodedBatch
        do {
            batch = try source.decode(WebhookRequest(body: body, receivedAt: now))
        } catch {
            throw ErrorMapping(error).apiError
        }
        for item in batch.items {
            switch item {
            case .change(let change, _):
                changes.append(
                    LoggedPastChange(
                        position: LogPosition(UInt64(changes.count + 1)),
                        appendedAt: change.occurredAt ?? now, source: source.name,
                        change: .stored(try change.storedText())))
            case .parked(let parked): throw APIError(.badRequest, parked.reason)
            case .refused(let path, let reason):
                throw APIError(.badRequest, path.isEmpty ? reason : "\(path): \(reason)")
            case .ignored: break
            }
        }
    }

    /// What the draft would have done, as a relay answers it.
    package func answer() throws -> JSONValue {
        let head = LogPosition(UInt64(changes.count))
        let span = PastSpan(
            first: LogPosition(1), head: head, settled: head, endedFrom: .start,
            receiptsFrom: LogPosition(1))
        var count = try RehearsalCount(
            of: subject, to: Self.devices(of: subject.subscription.owner, at: now), span: span,
            settings: settings, shard: UUIDBytes(high: 0, low: 0), examples: examples)
        count.answer.end = .file
        for change in changes.reversed() {
            guard count.take(change) else { break }
        }
        count.noteErrors(since: 0, among: changes.reversed())
        return try count.concluded().json
    }

    private static func devices(of user: UserID, at now: Timestamp) -> [PastDevice] {
        guard let id = DeviceID(rawValue: "device") else { return [] }
        return [
            PastDevice(
                serial: 1, id: id, owner: user, gateway: .apns, gatewayEnvironment: .development,
                topic: nil, registeredAt: now, activation: .start, ended: nil)
        ]
    }
}
