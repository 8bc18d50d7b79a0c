import Delivery
import Fanout
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// Explains why changes fired subscriptions or did not: reads the past, and passes it to the
/// ``Fanout/Explainer``.
///
/// Every read is by key or bounded. Between reads the service checks whether the caller's time is
/// over, and whether the caller has gone.
struct ExplainService: Sendable {
    /// The registries that it reads.
    typealias Past =
        PastRegistry & SubscriptionRegistry & DeliveryRegistry & ParkedChangeRegistry
        & ClientReceiptRegistry

    let registry: any Past
    /// How long things are kept, for answers about what is gone.
    let retention: Retention
    /// The halts in force.
    let halts: @Sendable () -> [HaltInForce]

    /// The entries of the log that one question passes.
    static let lookedAt = 20_000
    /// The subscriptions of one user that are explained for one change.
    static let mostSubscriptions = 1000
    /// The maximum number of explanations in an answer.
    static let mostExplanations = 50
    /// The maximum number of parked changes that an answer names.
    private static let mostParked = 1000
    /// The versions of one subscription or device that are read.
    static let mostVersions = 200
    /// The number of ended devices that are included besides the current ones.
    static let mostEndedDevices = 5

    /// The asker of a question.
    enum Asker: Sendable, Hashable {
        /// A user, for whom only what this user may read exists.
        case user(UserID)
        /// The operator of the relay.
        case administrator
    }

    /// The answer to a question.
    struct Answer: Sendable {
        /// The explanations.
        var explanations: [Explanation] = []
        /// The summary in one sentence.
        var sentence = ""
        /// The number of changes that were looked at and are not explained, because they did not
        /// fire and were not near misses.
        var others = 0
        /// The entries of the log that a search passed, if there was one.
        var lookedThrough: ClosedRange<UInt64>?
        /// Whether the time was over before everything was looked at.
        var isCut = false
        /// The numbers of parked changes that contain the record's name, or that came under the ID.
        var parked: [UInt64] = []
        /// The changes that were appended under the source's own ID, if that was asked about.
        var known: [RememberedChange] = []
    }

    /// Answers a question about a container, as far as its time allows.
    func answer(
        _ question: ExplainQuestion, of settings: ContainerSettings, for asker: Asker,
        within allowance: QueryAllowance, at now: Timestamp
    ) async throws -> Answer {
        var answer = try await wholeAnswer(
            question, of: settings, for: asker, within: allowance, at: now)
        if allowance.isOver {
            allowance.noteCut()
            answer.isCut = true
            // What has not been found may exist.
            answer.sentence =
                answer.explanations.isEmpty
                ? "The time limit was reached before anything was found."
                : answer.sentence + " The time limit was reached before everything was checked."
        }
        return answer
    }

    private func wholeAnswer(
        _ question: ExplainQuestion, of settings: ContainerSettings, for asker: Asker,
        within allowance: QueryAllowance, at now: Timestamp
    ) async throws -> Answer {
        let reading = ExplainReading(
            service: self, settings: settings, asker: asker,
            span: try await registry.pastSpan(), now: now, allowance: allowance)
        if let delivery = question.delivery {
            return try await answer(delivery, question, reading)
        }
        switch question.changes {
        case .position(let position):
            guard let change = try await reading.change(at: position) else {
                let gone = try await reading.gone(position, question)
                return Answer(explanations: [gone]).concluded(of: 1, question)
            }
            return try await answer([change], question, reading)
        case .record(let type, let name):
            return try await answer(type, name, question, reading)
        case .sent(let source, let id):
            return try await answer(source, id, question, reading)
        case .latest:
            return try await answerLatest(question, reading)
        }
    }

    // MARK: Changes that are known

    private func answer(
        _ changes: [PastChange], _ question: ExplainQuestion, _ reading: ExplainReading
    ) async throws -> Answer {
        var answer = Answer()
        for change in changes {
            guard try !reading.isOver() else { break }
            let found = try await reading.explanations(of: change, question)
            answer.explanations += found.prefix(Self.mostExplanations)
            answer.others += max(0, found.count - Self.mostExplanations)
        }
        guard answer.explanations.isEmpty, let user = question.user else {
            return answer.concluded(of: changes.count, question)
        }
        let found = changes.first?.change?.database
        if let asked = question.database, let found, asked != found {
            answer.sentence =
                "The change was in the \(found.rawValue) database, and \(user) had no "
                + "subscription in the \(asked.rawValue) one when it came."
        } else {
            // The user may have subscriptions in another database.
            let place = (question.database ?? found).map { " in the \($0.rawValue) database" } ?? ""
            answer.sentence = "\(user) had no subscription\(place) when the change came."
        }
        return answer
    }

    private func answer(
        _ type: RecordType, _ name: RecordName, _ question: ExplainQuestion,
        _ reading: ExplainReading
    ) async throws -> Answer {
        var search = reading.search(limit: question.limit)
        search.recordType = type
        search.recordName = name
        var changes = try await reading.changes(search, question)
        if changes.isEmpty, let user = question.user {
            // The last change of a remembered record is found, however old it is.
            let owner = SubscriptionOwner(
                container: reading.container, database: question.database ?? .public, user: user)
            let record = RecordID(recordName: name, zoneID: question.zone ?? .default)
            let place = try await registry.lastChange(of: record, type, in: owner)
            if let place { changes = try await reading.remembered(at: place, question) }
        }
        guard changes.isEmpty else {
            return try await answer(changes, question, reading)
        }
        var answer = Answer(lookedThrough: reading.lookedThrough)
        answer.sentence =
            "No change of \(type)/\(name) "
            + (question.zone.map { "in the zone \($0.zoneName) " } ?? "")
            + "was found in the log from position \(reading.lookedThrough.lowerBound) to "
            + "\(reading.lookedThrough.upperBound)."
        guard reading.asker == .administrator else { return answer }
        answer.parked = try await parked(reading) { Self.mayName(name, $0.body) }
        if !answer.parked.isEmpty {
            answer.sentence +=
                " \(answer.parked.count) parked "
                + (answer.parked.count == 1 ? "change" : "changes") + " may belong to it."
        }
        return answer
    }

    /// Returns whether a parked body contains the name as a text, or as a number.
    ///
    /// It compares bytes, because comparing characters took a processor half a second for one page.
    static func mayName(_ name: RecordName, _ body: [UInt8]) -> Bool {
        if has(JSONValue.string(name.rawValue).utf8, body) { return true }
        guard Int64(name.rawValue) != nil else { return false }
        return has(Array(name.rawValue.utf8), body) { place in
            let before = place.lowerBound > 0 ? body[place.lowerBound - 1] : nil
            let after = place.upperBound < body.count ? body[place.upperBound] : nil
            return before.map(isOfWord) != true && after.map(isOfWord) != true
        }
    }

    /// Returns whether a byte continues a word or number.
    private static func isOfWord(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x80...: true
        default: #""_+-."#.utf8.contains(byte)
        }
    }

    /// Returns whether bytes contain other bytes at a place that `fits`.
    private static func has(
        _ wanted: [UInt8], _ bytes: [UInt8], where fits: (Range<Int>) -> Bool = { _ in true }
    ) -> Bool {
        guard let first = wanted.first else { return false }
        var rest = bytes[...]
        while let start = rest.firstIndex(of: first) {
            rest = rest[start...]
            guard rest.count >= wanted.count else { return false }
            if rest.starts(with: wanted), fits(start..<(start + wanted.count)) { return true }
            rest = rest.dropFirst()
        }
        return false
    }

    /// Returns the numbers of the matching parked changes, as far as the question's time allows.
    private func parked(
        _ reading: ExplainReading, where isMeant: (ParkedChange) -> Bool
    ) async throws -> [UInt64] {
        var found: [UInt64] = []
        var last: UInt64 = 0
        while found.count < Self.mostParked, try !reading.isOver() {
            let page = try await registry.parkedChanges(
                of: reading.container, after: last, limit: 1000)
            guard let end = page.last else { break }
            found += page.filter(isMeant).map(\.number)
            last = end.number
        }
        return Array(found.prefix(Self.mostParked))
    }

    // MARK: What a source sent

    private func answer(
        _ source: SourceName, _ id: String, _ question: ExplainQuestion,
        _ reading: ExplainReading
    ) async throws -> Answer {
        let known = try await registry.appendedChanges(
            ofDelivery: id, from: source, in: reading.container, at: reading.now,
            limit: ExplainQuestion.mostChanges)
        let unmapped = try await parked(reading) { parked in
            parked.source == source && parked.headers.values.contains(id)
        }
        guard let first = known.first else {
            var answer = Answer()
            answer.parked = unmapped
            answer.sentence =
                unmapped.isEmpty
                ? "Nothing is known of \"\(id)\" from \(source): it did not arrive, was refused, "
                    + "or is no longer remembered."
                : "The webhook \"\(id)\" from \(source) could not be mapped and is parked."
            return answer
        }
        var answer = Answer()
        if question.user != nil {
            var changes: [PastChange] = []
            var gone: [Explanation] = []
            for place in known.prefix(question.limit) {
                if let change = try await reading.change(at: place.position) {
                    changes.append(change)
                } else {
                    gone.append(try await reading.gone(place.position, question))
                }
            }
            answer = try await self.answer(changes, question, reading)
            answer.explanations += gone
            answer = answer.concluded(of: changes.count + gone.count, question)
        }
        answer.known = known
        answer.parked = unmapped
        let places =
            known.count == 1
            ? "position \(first.position)"
            : "\(known.count) positions, the first of which is \(first.position)"
        let until = known.map(\.until).min() ?? first.until
        answer.sentence =
            "The webhook \"\(id)\" from \(source) was appended at \(places); until "
            + "\(until.iso8601Seconds), changes with the same ID are duplicates and fire "
            + "nothing."
            + Self.besides(unmapped) + (answer.sentence.isEmpty ? "" : " \(answer.sentence)")
        return answer
    }

    /// Returns a sentence about the parked changes that came under the same ID as appended ones.
    private static func besides(_ parked: [UInt64]) -> String {
        switch parked.count {
        case 0: ""
        case 1: " Another change of it could not be mapped and is parked."
        case let count: " \(count) other changes of it could not be mapped and are parked."
        }
    }

    // MARK: A subscription alone

    private func answerLatest(
        _ asked: ExplainQuestion, _ reading: ExplainReading
    ) async throws -> Answer {
        var question = asked
        question.database = try await reading.database(asked)
        let versions = try await reading.versions(question)
        var search = reading.search(limit: question.limit)
        // An earlier version may have watched another type.
        let watched = Set(versions.map(\.version.subscription.recordType))
        let isAny = watched.isEmpty || watched.contains(nil)
        let types: Set<RecordType>? = isAny ? nil : Set(watched.compactMap(\.self))
        if let types, types.count == 1 { search.recordType = types.first }
        var answer = Answer(lookedThrough: reading.lookedThrough)
        var fired = 0
        var firedByNewest = 0
        var near = 0
        var counted = 0
        let changes = try await reading.changes(search, question, of: types)
        for change in changes {
            guard try !reading.isOver() else { break }
            counted += 1
            let explanation = try await reading.explanation(of: change, question, versions)
            if explanation.verdict == .fired {
                fired += 1
                firedByNewest += explanation.serial == versions.first?.version.serial ? 1 : 0
            }
            near += explanation.isNear ? 1 : 0
            if explanation.verdict != .didNotFire || explanation.isNear {
                answer.explanations.append(explanation)
            } else {
                answer.others += 1
            }
        }
        answer.sentence =
            changes.isEmpty
            ? "The log has no change that it could watch from position "
                + "\(reading.lookedThrough.lowerBound) to \(reading.lookedThrough.upperBound)."
            : "Of the last \(counted == 1 ? "change" : "\(counted) changes") that it could watch, "
                + "\(fired) fired it, and \(near) missed by one comparison."
        if let version = versions.first?.version {
            answer.sentence += try await earlierFirings(of: version, beside: firedByNewest)
        }
        return answer
    }

    /// Returns a sentence about the firings of a subscription, if there are more than were looked
    /// at.
    private func earlierFirings(
        of version: SubscriptionVersion, beside fired: Int
    ) async throws -> String {
        let health = try await registry.health(of: [version.serial])[version.serial]
        guard let health, health.fired > fired, let last = health.lastFired else { return "" }
        return " Since it was saved it has fired "
            + (health.fired == 1 ? "once" : "\(health.fired) times, the last time")
            + " by the change at position \(last.position) (\(last.at.iso8601Seconds))."
    }

    // MARK: A delivery

    private func answer(
        _ delivery: DeliveryID, _ question: ExplainQuestion, _ reading: ExplainReading
    ) async throws -> Answer {
        guard let found = try await reading.origin(of: delivery, question) else {
            throw APIError(
                .notFound,
                "there is no delivery \(delivery): it is not settled yet, or its receipts are no "
                    + "longer kept\(retention.receiptsAreKept())"
                    + (question.changes == .latest
                        ? "; give the position of its change too (belfry.seq in the push), with "
                            + "which it can be found earlier and for longer"
                        : ""))
        }
        return Answer(explanations: [found]).concluded(of: 1, question)
    }
}

private extension ExplainService.Answer {
    /// Returns the answer with its sentence: that of the only explanation, or how many changes
    /// fired, or how many subscriptions a single change fired.
    func concluded(of changes: Int, _ question: ExplainQuestion) -> Self {
        var answer = self
        let fired = answer.explanations.filter { $0.verdict == .fired }
        switch (answer.explanations.count, changes) {
        case (0, _): break
        case (1, _): answer.sentence = answer.explanations[0].sentence
        case (let count, ...1):
            answer.sentence = "\(fired.count) of \(count + answer.others) subscriptions fired."
        default:
            answer.sentence =
                "Of \(changes) changes, \(Set(fired.map(\.position)).count) fired "
                + (question.subscription == nil ? "a subscription." : "it.")
        }
        return answer
    }
}
