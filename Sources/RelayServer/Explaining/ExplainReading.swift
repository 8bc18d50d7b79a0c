import Delivery
import Fanout
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// Reads the past for one question, as far as the asker may know about it.
struct ExplainReading: Sendable {
    let service: ExplainService
    let settings: ContainerSettings
    let asker: ExplainService.Asker
    let span: PastSpan
    let now: Timestamp
    /// The time that it may take.
    let allowance: QueryAllowance

    private var registry: any ExplainService.Past { service.registry }
    var container: ContainerKey { settings.key }

    // MARK: Changes

    /// The range of log entries that a search passes.
    var lookedThrough: ClosedRange<UInt64> {
        let head = span.head.rawValue
        let least =
            head > UInt64(ExplainService.lookedAt)
            ? head - UInt64(ExplainService.lookedAt) : 1
        return min(max(span.first.rawValue, least), head)...head
    }

    /// Returns a search back from the head of the log.
    func search(limit: Int) -> PastSearch {
        PastSearch(
            of: container, before: LogPosition(span.head.rawValue + 1),
            entries: ExplainService.lookedAt, limit: limit)
    }

    /// Returns whether the asker may know about a change.
    ///
    /// For a user, a change does not exist if the user could read the record neither before nor
    /// after it.
    func isVisible(_ past: PastChange, _ question: ExplainQuestion? = nil) -> Bool {
        if let database = question?.database, let change = past.change {
            guard change.database == database else { return false }
        }
        if let zone = question?.zone, let change = past.change {
            guard change.recordID.zoneID == zone else { return false }
        }
        guard case .user(let user) = asker else { return true }
        guard let change = past.change else { return false }
        guard change.database == .public || change.owner == user else { return false }
        return change.mayRead(user) || (change.readersBefore != nil && change.mightRead(user))
    }

    /// Returns the change at a position; `nil` if the log is no longer kept from then.
    ///
    /// - Throws: 404 if there is none, or none that the asker may know about.
    func change(at position: LogPosition) async throws -> PastChange? {
        let past = try await registry.pastChange(at: position, of: container)
        if let past, isVisible(past) { return past }
        guard position > .start, position < span.first else {
            throw APIError(.notFound, "there is no change at position \(position)")
        }
        return nil
    }

    /// Returns the changes that `search` finds, that the asker may know about, and that have one of
    /// the `types`, if given.
    ///
    /// Changes that are left out do not count towards the limit of the search.
    func changes(
        _ search: PastSearch, _ question: ExplainQuestion, of types: Set<RecordType>? = nil
    ) async throws -> [PastChange] {
        var page = search
        page.limit = Self.changesAtATime
        var found: [PastChange] = []
        var bytes = 0
        while found.count < search.limit, bytes < Self.mostBytes, page.entries > 0, try !isOver() {
            let slice = try await registry.pastChanges(page, turn: allowance.beginTurn)
            for (past, size) in zip(slice.changes, slice.sizes) where isVisible(past, question) {
                if let types, let type = past.change?.recordType, !types.contains(type) { continue }
                found.append(past)
                bytes += size
            }
            guard slice.before < page.before else { break }
            page.entries -= Int(page.before.rawValue - slice.before.rawValue)
            page.before = slice.before
        }
        return Array(found.prefix(search.limit))
    }

    /// Returns the latest change of a record at its remembered position; none if the log is no
    /// longer kept from then, or if the asker may not know about it.
    func remembered(
        at position: LogPosition, _ question: ExplainQuestion
    ) async throws -> [PastChange] {
        let past = try await registry.pastChange(at: position, of: container)
        return [past].compactMap(\.self).filter { isVisible($0, question) }
    }

    /// The number of changes that are read at a time.
    private static let changesAtATime = 50
    /// The approximate bytes of stored changes in one answer, all of which are in memory until they
    /// are explained.
    private static let mostBytes = 2 * Limits.maximumPageBytes

    /// Returns the explanation that the change at a position is no longer kept.
    func gone(
        _ position: LogPosition, _ question: ExplainQuestion
    ) async throws -> Explanation {
        var explanation = Explanation(
            position: position, subscriptionID: question.subscription, owner: question.user)
        let oldest = try await registry.moments(of: [span.first])[span.first]
        let kept = service.retention.logIsKept(oldest: oldest.map { now.duration(since: $0) })
        explanation.lack(
            .appended,
            "the change at position \(position) is no longer kept\(kept); the log begins at "
                + "position \(span.first)")
        return explanation
    }

    // MARK: Subscriptions

    /// Returns the versions of the requested subscription.
    ///
    /// - Throws: 400 if its owner is not given, 404 if there is none.
    func versions(_ question: ExplainQuestion) async throws -> [PastSubscription] {
        guard let id = question.subscription else { return [] }
        let owner = try owner(question, question.database ?? .public)
        let versions = try await registry.pastSubscriptions(
            id, of: owner, limit: ExplainService.mostVersions)
        guard versions.isEmpty else { return versions }
        guard try await disabled(id, of: owner) == nil else { return [] }
        throw APIError(
            .notFound,
            "there is no subscription \"\(id)\" of \"\(owner.user)\""
                + (question.database.map { " in the \($0.rawValue) database" } ?? "")
                + ", and the log knows of none either")
    }

    /// Returns the database of the requested subscription, if the question does not name one: the
    /// first that has a subscription of this name, or else the first that had one.
    func database(_ question: ExplainQuestion) async throws -> DatabaseScope? {
        guard question.database == nil, let id = question.subscription else {
            return question.database
        }
        var former: DatabaseScope?
        for database in DatabaseScope.allCases {
            let owner = try owner(question, database)
            let newest = try await registry.pastSubscriptions(id, of: owner, limit: 1).first
            if let newest, newest.ended == nil { return database }
            if newest != nil {
                former = former ?? database
            } else if former == nil, try await disabled(id, of: owner) != nil {
                former = database
            }
        }
        return former
    }

    private func owner(
        _ question: ExplainQuestion, _ database: DatabaseScope
    ) throws(APIError) -> SubscriptionOwner {
        guard let user = question.user else {
            throw APIError(.badRequest, "user: name the user whose subscription or device is meant")
        }
        return SubscriptionOwner(container: container, database: database, user: user)
    }

    private func disabled(
        _ id: SubscriptionID, of owner: SubscriptionOwner
    ) async throws -> DisabledSubscription? {
        try await registry.disabledSubscriptions(of: owner)
            .first { $0.version.subscription.id == id }
    }

    // MARK: Explanations

    /// Returns the explanations of a change for the requested subscriptions: those that it fired
    /// first, and then by how near it came.
    func explanations(
        of change: PastChange, _ question: ExplainQuestion
    ) async throws -> [Explanation] {
        var question = question
        question.database = question.database ?? change.change?.database
        let owner = try owner(question, question.database ?? .public)
        if question.subscription != nil {
            let versions = try await versions(question)
            return [try await explanation(of: change, question, versions)]
        }
        var told = try await told(of: change, to: owner, question)
        told.active = try await registry.subscriptions(
            of: owner, judging: change.position, limit: ExplainService.mostSubscriptions)
        var found: [Explanation] = []
        for subscription in told.active ?? [] {
            guard try !isOver() else { break }
            question.subscription = subscription.version.subscription.id
            found.append(try await explanation(of: told, question, [subscription]))
        }
        return found.sorted { $0.rank < $1.rank }
    }

    /// Returns whether the time of the question is over.
    ///
    /// - Throws: `CancellationError` if the caller has gone.
    func isOver() throws -> Bool {
        try Task.checkCancellation()
        return allowance.isOver
    }

    /// A change, with the devices of a user to which it was told or might have been told.
    private struct ToldChange {
        let change: PastChange
        let owner: SubscriptionOwner
        let hearing: [PastDevice]
        let ended: [PastDevice]
        /// The user's subscriptions that judged the change, if they have been read.
        var active: [PastSubscription]?
    }

    private func told(
        of change: PastChange, to owner: SubscriptionOwner, _ question: ExplainQuestion
    ) async throws -> ToldChange {
        let hearing = try await registry.pastDevices(
            of: owner.user, in: container, .hearing(change.position))
        return ToldChange(
            change: change, owner: owner, hearing: hearing,
            ended: try await endedDevices(change, question, owner.user, beside: hearing))
    }

    /// Returns the explanation of a change for one subscription, given its versions.
    func explanation(
        of change: PastChange, _ question: ExplainQuestion, _ versions: [PastSubscription]
    ) async throws -> Explanation {
        let owner = try owner(question, question.database ?? .public)
        return try await explanation(
            of: try await told(of: change, to: owner, question), question, versions)
    }

    private func explanation(
        of told: ToldChange, _ question: ExplainQuestion, _ versions: [PastSubscription]
    ) async throws -> Explanation {
        guard let id = question.subscription else {
            throw APIError(.badRequest, "subscription: name the subscription")
        }
        var asked = Explainer.Question(id: id, owner: told.owner.user, versions: versions)
        asked.devices = told.hearing
        if let subject = versions.first(where: { $0.judges(told.change.position) }) {
            asked.others = try await silentSiblings(of: subject, told)
        } else {
            asked.disabled = try await disabled(id, of: told.owner)
        }
        let devices = told.hearing + told.ended
        let moments = try await registry.moments(
            of: Self.places(of: versions, devices) + [span.receiptsFrom])
        var explainer = Explainer(
            of: told.change, span: span, settings: settings, shard: registry.shardIdentity,
            moments: moments, trace: Self.trace)
        explainer.receiptsAreKept = service.retention.receiptsAreKept(
            oldest: moments[span.receiptsFrom].map { now.duration(since: $0) })
        explainer.isForOperator = asker == .administrator
        var judged = explainer.judge(asked)
        guard judged.explanation.verdict == .fired else { return judged.explanation }
        let reading = try await DeviceReading(self, told.change, judged)
        for device in devices where question.device == nil || device.id == question.device {
            judged.explanation.devices.append(
                explainer.explain(device, judged, try await reading.facts(of: device)))
        }
        explainer.conclude(
            &judged.explanation, hearing: told.hearing.count, asked: question.device)
        return judged.explanation
    }

    /// Returns the owner's other silent subscriptions, if this one is silent: their pushes may
    /// replace its own.
    private func silentSiblings(
        of subject: PastSubscription, _ told: ToldChange
    ) async throws -> [PastSubscription] {
        guard !subject.version.subscription.notificationInfo.isVisible else { return [] }
        var active = told.active
        if active == nil {
            active = try await registry.subscriptions(
                of: told.owner, judging: told.change.position,
                limit: ExplainService.mostSubscriptions)
        }
        return (active ?? []).filter { !$0.version.subscription.notificationInfo.isVisible }
    }

    private static let trace: MissFinder.Trace = { predicate, fields, moment in
        try? PreparedPredicate(checked: predicate).trace(onValue: .map(fields), now: moment)
    }

    /// Returns the positions whose moments the explanation mentions.
    private static func places(
        of versions: [PastSubscription], _ devices: [PastDevice]
    ) -> [LogPosition] {
        versions.prefix(20).flatMap { [$0.version.activation, $0.ended].compactMap(\.self) }
            + devices.prefix(50).flatMap { [$0.activation, $0.ended].compactMap(\.self) }
    }

    /// Returns the last versions of devices that had ended when the change came.
    private func endedDevices(
        _ change: PastChange, _ question: ExplainQuestion, _ user: UserID,
        beside hearing: [PastDevice]
    ) async throws -> [PastDevice] {
        let found: [PastDevice]
        if let device = question.device {
            let versions = try await registry.pastDevices(
                of: user, in: container, .named(device, limit: ExplainService.mostVersions))
            guard let first = versions.first else {
                throw APIError(
                    .notFound,
                    "there is no device \"\(device)\" of \"\(user)\", and the log knows of none "
                        + "either")
            }
            found = [versions.last { $0.activation < change.position } ?? first]
        } else {
            found = try await registry.pastDevices(
                of: user, in: container,
                .endedBefore(change.position, limit: ExplainService.mostVersions))
        }
        var known = Set(hearing.map(\.id))
        let latest = found.reversed().filter { known.insert($0.id).inserted }
        return Array(latest.prefix(ExplainService.mostEndedDevices))
    }

    // MARK: A delivery

    /// Returns the explanation that leads to a delivery; `nil` if it is unknown, also to this
    /// asker.
    func origin(
        of delivery: DeliveryID, _ question: ExplainQuestion
    ) async throws -> Explanation? {
        if case .position(let position) = question.changes, question.user != nil {
            guard let change = try await change(at: position) else {
                return try await gone(position, question)
            }
            return try await explanations(of: change, question).lazy
                .compactMap { $0.narrowed(to: delivery) }.first
        }
        var filter = ReceiptFilter()
        filter.deliveryID = delivery
        if case .position(let position) = question.changes { filter.position = position }
        guard let place = try await place(of: delivery, filter) else { return nil }
        let version = try await registry.pastSubscription(place.subscription, of: container)
        guard let subscription = version?.version.subscription, let version,
            question.database == nil || question.database == subscription.database,
            question.user == nil || question.user == subscription.owner,
            let change = try? await change(at: place.position)
        else {
            // Receipts may be kept for longer than the change that led to them.
            guard place.position < span.first, try await mayBeTold(ofDevice: place.device) else {
                return nil
            }
            return try await gone(place.position, question)
        }
        var question = question
        question.user = subscription.owner
        question.database = subscription.database
        question.subscription = subscription.id
        return try await explanation(of: change, question, [version]).narrowed(to: delivery)
    }

    private func place(
        of delivery: DeliveryID, _ filter: ReceiptFilter
    ) async throws -> (position: LogPosition, subscription: UInt64, device: UInt64)? {
        let owed: OwedDelivery
        switch try await registry.exception(delivery) {
        case .retry(let retry): owed = retry.delivery
        case .deadLetter(let letter): owed = letter.delivery
        case nil:
            return try await registry.receipts(matching: filter, limit: 1).first.map {
                ($0.ordinal.position, $0.subscriptionSerial, $0.deviceSerial)
            }
        }
        return (owed.delivery.ordinal.position, owed.subscriptionSerial, owed.deviceSerial)
    }

    /// Returns whether a device belongs to the container, and to the asking user.
    private func mayBeTold(ofDevice serial: UInt64) async throws -> Bool {
        guard let holder = try await registry.holders(ofDevices: [serial])[serial],
            holder.owner.container == container
        else { return false }
        guard case .user(let user) = asker else { return true }
        return holder.owner.user == user
    }
}
