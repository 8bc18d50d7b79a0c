import Delivery
import DequeModule
import Fanout
import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// Judges changes one after the other, and counts.
///
/// An object, because what holds it is moved about: as a value, code to copy all that it consists
/// of, written out once for each type around it, had a third of a megabyte in the executable.
final class RehearsalCount {
    private var rehearsal: Rehearsal
    private let shown: RehearsalExamples
    private let examples: Int
    /// What came of it so far.
    var answer: RehearseService.Answer
    private let order: RehearsalTally.Order
    /// What the devices ask for, by serial.
    private let kindness: [UInt64: DeviceKindness]
    /// Changes that did not fire and are looked at closely, the newest.
    private var close: Deque<LoggedPastChange> = []

    init(
        of subject: RehearseService.Subject, to devices: [PastDevice], span: PastSpan,
        settings: ContainerSettings, shard: UUIDBytes, examples: Int,
        kindness: [UInt64: DeviceKindness] = [:],
        mostSteps: Int = Limits.maximumStepsPerChange,
        order: RehearsalTally.Order = .newestFirst
    ) throws {
        self.examples = examples
        self.order = order
        self.kindness = Dictionary(
            uniqueKeysWithValues: devices.map {
                ($0.serial, kindness[$0.serial] ?? DeviceKindness())
            })
        rehearsal = try Rehearsal(
            of: subject.subscription, insteadOf: subject.former, to: devices,
            mostSteps: mostSteps)
        shown = RehearsalExamples(
            of: subject.subscription, to: devices, span: span, settings: settings, shard: shard
        ) { predicate, fields, moment in
            try? PreparedPredicate(checked: predicate).trace(onValue: .map(fields), now: moment)
        }
        answer = RehearseService.Answer(
            subject: subject, devices: devices.count,
            tally: RehearsalTally(
                of: subject.subscription, insteadOf: subject.former, remembering: examples,
                order: order,
                keepsFirings: subject.subscription.kindness.isHolding
                    || kindness.values.contains { !$0.isEmpty }))
    }

    /// Judges one change; `false` if that ends the rehearsal.
    func take(_ change: LoggedPastChange) -> Bool {
        do {
            guard let verdict = try rehearsal.judge(change) else { return true }
            answer.tally.add(change, verdict)
            if !verdict.fires { lookClosely(at: change) }
            return true
        } catch is DearChange {
            answer.end = .steps
            answer.dear = change.position
            return false
        } catch {
            // What cannot be read was set aside by the walk, or will be.
            return true
        }
    }

    private func lookClosely(at change: LoggedPastChange) {
        switch order {
        case .newestFirst:
            if close.count < RehearseService.mostClose { close.append(change) }
        case .oldestFirst:
            close.prepend(change)
            if close.count > RehearseService.mostClose { close.removeLast() }
        }
    }

    /// Evaluations that had an error, so far.
    var errors: Int { rehearsal.errors }

    /// Looks for a change on which the condition had an error, once one is known to be there.
    func noteErrors(
        since before: Int, among changes: [LoggedPastChange], isOver: () -> Bool = { false }
    ) {
        answer.errors = rehearsal.errors
        guard answer.errors > before, answer.errorExample == nil else { return }
        for change in changes where !isOver() {
            guard let past = shown.past(change), let read = past.change,
                rehearsal.mayTell(of: read), let says = shown.error(on: change)
            else { continue }
            answer.errorExample = (past, says)
            return
        }
    }

    /// The answer, with its examples.
    func concluded(isOver: () -> Bool = { false }) throws -> RehearseService.Answer {
        for change in close where !isOver() {
            try Task.checkCancellation()
            guard let explanation = shown.explanation(of: change) else { continue }
            answer.closeCount += 1
            guard explanation.isNear else { continue }
            answer.nearCount += 1
            if answer.near.count < examples, let past = shown.past(change) {
                answer.near.append((past, explanation.sentence))
            }
        }
        let left = self.left(isOver: isOver)
        answer.left = left?.outcome
        answer.examples = answer.tally.firedExamples.enumerated().compactMap { index, change in
            guard var example = shown.example(change) else { return nil }
            Self.tell(left?.told[index] ?? [:], &example)
            return example
        }
        guard answer.subject.former != nil else { return answer }
        let difference = answer.tally.difference
        answer.added = difference.addedExamples.compactMap(shown.past)
        answer.removed = difference.removedExamples.compactMap(shown.past)
        return answer
    }

    /// Pushes that are gone through once more.
    static let mostHeld = 400_000
    /// Firings between two looks at the time.
    private static let firingsAtATime = 512

    /// What would be left of the pushes.
    private struct Left {
        var outcome = HeldRehearsal.Outcome()
        /// For how many the pushes of the newest firings would have been sent, by device: where
        /// they would have told of others, the newest firing first.
        var told: [Int: [UInt64: Int64]] = [:]
    }

    /// Shows the pushes as they would have been sent for others too.
    private static func tell(
        _ counts: [UInt64: Int64], _ example: inout RehearsalExamples.Example
    ) {
        for index in example.pushes.indices {
            guard let owed = example.pushes[index].owed, let count = counts[owed.deviceSerial]
            else { continue }
            let digest = Digest(
                id: 0, deliveries: count, count: count, openedAt: example.past.appendedAt,
                newest: owed)
            example.pushes[index].tell(digest.delivery)
        }
    }

    /// What would be left of the pushes by what is asked for, to be told less; `nil` where nothing
    /// is asked for, or there is no time for it.
    private func left(isOver: () -> Bool) -> Left? {
        guard let firings = answer.tally.firings,
            firings.count * max(1, kindness.count) <= Self.mostHeld
        else { return nil }
        var left = Left()
        for (serial, asked) in kindness {
            var device = HeldRehearsal(of: answer.subject.subscription, to: asked)
            // The numbers of the pushes of the newest firings.
            var numbers: [UInt64: Int] = [:]
            for (index, firing) in firings.enumerated() where !firing.leftOut.contains(serial) {
                if index.isMultiple(of: Self.firingsAtATime), isOver() { return nil }
                let number = device.fire(at: firing.at)
                let age = firings.count - 1 - index
                if age < examples { numbers[number] = age }
            }
            device.finish()
            left.outcome += device.outcome
            for (number, count) in device.told {
                guard let age = numbers[number] else { continue }
                left.told[age, default: [:]][serial] = count
            }
        }
        return left
    }
}
