import ChangeSources
import Fanout
package import RelayModel
import Storage

/// Rehearses a subscription with changes from a file instead of the log, in the format of the
/// preset `belfry`, oldest first.
///
/// Each change is judged as it comes, and only the examples that are shown are kept. The position
/// of a change is its number in the file. This is a pure value.
package struct FileRehearsal {
    /// The maximum number of changes in a rehearsal.
    package static let mostChanges = 1_000_000

    private let reader: FileLineReader
    private var count: RehearsalCount
    /// The number of judged changes.
    package private(set) var taken = 0
    /// Whether no more changes are judged, because the condition took too many steps or the time is
    /// over.
    private(set) var hasEnded = false

    /// Creates a rehearsal of `draft` as a subscription of `user`, about whom nothing is known.
    ///
    /// A device is invented, so that there is a push to show. Changes without a time count as of
    /// `now`.
    ///
    /// - Throws: 400, as a save would answer.
    package init(
        of draft: JSONValue, user: UserID, database: DatabaseScope, container: ContainerKey,
        examples: Int, at now: Timestamp
    ) throws(APIError) {
        let owner = SubscriptionOwner(container: container, database: database, user: user)
        do {
            try self.init(
                of: try Self.subject(draft, of: owner, at: now),
                to: Self.devices(of: owner, at: now),
                settings: ContainerSettings(key: container, topics: ["file"]),
                examples: examples, at: now)
        } catch {
            throw ErrorMapping(error).apiError
        }
    }

    /// Creates a rehearsal for a user of a container.
    init(
        of subject: RehearseService.Subject, to devices: [PastDevice],
        settings: ContainerSettings, examples: Int,
        kindness: [UInt64: DeviceKindness] = [:], at now: Timestamp,
        mostSteps: Int = Limits.maximumStepsPerChange
    ) throws {
        reader = FileLineReader(at: now)
        // The end of the file is not known yet, and all of its changes count as settled.
        let span = PastSpan(
            first: LogPosition(1), head: LogPosition(.max), settled: LogPosition(.max),
            endedFrom: .start, receiptsFrom: LogPosition(1))
        count = try RehearsalCount(
            of: subject, to: devices, span: span, settings: settings,
            shard: UUIDBytes(high: 0, low: 0), examples: examples, kindness: kindness,
            mostSteps: mostSteps, order: .oldestFirst)
        count.answer.end = .file
    }

    private static func subject(
        _ draft: JSONValue, of owner: SubscriptionOwner, at now: Timestamp
    ) throws -> RehearseService.Subject {
        let reading = SubscriptionOperationReading(
            owner: owner, limits: RequestLimits(), schema: ContainerSchema(),
            assignedID: "draft")
        let subscription = try reading.subscription(
            try JSONReader(draft, path: "subscription"), savedAt: now)
        return RehearseService.Subject(
            subscription: subscription,
            cost: try PredicateScales(indexes: IndexDirectory(), limits: CostLimits())
                .weigh(subscription, path: "subscription"))
    }

    /// A new, empty queue of lines for this rehearsal.
    package var lines: FileLines { FileLines(reader) }

    /// Judges the changes of one line, which must come after the previous ones.
    ///
    /// - Throws: 400 with the error in the line, or if there are too many changes.
    package mutating func take(_ line: FileLine) throws {
        for change in try line.changes.get() { try judge(change) }
    }

    private mutating func judge(_ change: RecordChange) throws {
        guard !hasEnded else { return }
        guard taken < Self.mostChanges else {
            throw APIError(
                .badRequest, "a file may have at most \(Self.mostChanges) changes")
        }
        taken += 1
        let logged = LoggedPastChange(
            position: LogPosition(UInt64(taken)), appendedAt: change.occurredAt ?? reader.now,
            // The change itself: the text of the log would be written only to be parsed again.
            source: reader.source.name, change: .read(change))
        let errors = count.errors
        hasEnded = !count.take(logged)
        if count.errors > errors { count.noteErrors(since: errors, among: [logged]) }
    }

    /// Ends the rehearsal before the end of the file, because its time is over.
    mutating func end() {
        hasEnded = true
        count.answer.end = .time
    }

    /// Returns what the subscription would have done with the changes so far.
    mutating func concluded(
        isOver: () -> Bool = { false }
    ) throws -> RehearseService.Answer {
        try count.concluded(isOver: isOver)
    }

    /// Returns the result in the form of a relay's answer.
    package mutating func answer() throws -> JSONValue { try concluded().json }

    private static func devices(of owner: SubscriptionOwner, at now: Timestamp) -> [PastDevice] {
        guard let id = DeviceID(rawValue: "device") else { return [] }
        return [
            PastDevice(
                serial: 1, id: id, owner: owner.user, gateway: .apns,
                gatewayEnvironment: .development, topic: nil, registeredAt: now,
                activation: .start, ended: nil)
        ]
    }
}
