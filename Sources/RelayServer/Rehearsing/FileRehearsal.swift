import ChangeSources
import Fanout
package import RelayModel
import Storage

/// Rehearses a subscription by changes that stand in no log: those of a file, in the form in which
/// the preset `belfry` takes them, oldest first.
///
/// Each is judged as it comes, and only those that are shown are kept. A change's place is its
/// number. Pure.
package struct FileRehearsal {
    /// Changes that one rehearsal judges.
    package static let mostChanges = 1_000_000

    private let reader: FileLineReader
    private var count: RehearsalCount
    /// Changes that were judged.
    package private(set) var taken = 0
    /// Whether nothing more is judged, because the condition took too many steps.
    private(set) var hasEnded = false

    /// Prepares to rehearse `draft` as a subscription of `user`, of whom nothing is known.
    ///
    /// A device is made up, so that there is a push to be seen. A change that says no moment counts
    /// as of `now`.
    ///
    /// - Throws: 400 as a save would answer.
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

    /// Prepares to rehearse for a user of a container.
    init(
        of subject: RehearseService.Subject, to devices: [PastDevice],
        settings: ContainerSettings, examples: Int,
        kindness: [UInt64: DeviceKindness] = [:], at now: Timestamp,
        mostSteps: Int = Limits.maximumStepsPerChange
    ) throws {
        reader = FileLineReader(at: now)
        // Where the file ends is not known yet, and all of it is settled.
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

    /// Reads the lines that it is to judge; none yet.
    package var lines: FileLines { FileLines(reader) }

    /// Judges what one line says, which came after those before.
    ///
    /// - Throws: 400 that says what is wrong with it, or that there are too many.
    package mutating func take(_ line: FileLine) throws {
        for change in try line.changes.get() { try judge(change) }
    }

    private mutating func judge(_ change: RecordChange) throws {
        guard !hasEnded else { return }
        guard taken < Self.mostChanges else {
            throw APIError(
                .badRequest, "there are more changes than the \(Self.mostChanges) of a file")
        }
        taken += 1
        let logged = LoggedPastChange(
            position: LogPosition(UInt64(taken)), appendedAt: change.occurredAt ?? reader.now,
            // As it is: the text of the log would be written only to be read again.
            source: reader.source.name, change: .read(change))
        let errors = count.errors
        hasEnded = !count.take(logged)
        if count.errors > errors { count.noteErrors(since: errors, among: [logged]) }
    }

    /// Ends it before the end of the file, because its time is over.
    mutating func end() {
        hasEnded = true
        count.answer.end = .time
    }

    /// What the subscription would have done, by the changes so far.
    mutating func concluded(
        isOver: () -> Bool = { false }
    ) throws -> RehearseService.Answer {
        try count.concluded(isOver: isOver)
    }

    /// The same, as a relay answers it.
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
