import Delivery
import DequeModule
import Fanout
import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// Judges changes one after the other, and counts the results.
///
/// This is an object because its owners are moved about. As a value, its code for copying was
/// generated for each type around it, and took a third of a megabyte in the executable.
final class RehearsalCount {
    private var rehearsal: Rehearsal
    private let shown: RehearsalExamples
    private let examples: Int
    /// The results so far.
    var answer: RehearseService.Answer
    private let order: RehearsalTally.Order
    /// The holds that the devices ask for, by serial.
    private let kindness: [UInt64: DeviceKindness]
    /// The newest changes that did not fire, for a closer look.
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

    /// Judges one change; returns `false` if that ends the rehearsal.
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
            // The walk sets a change that cannot be read aside, or will do so.
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

    /// The number of evaluations with an error so far.
    var errors: Int { rehearsal.errors }

    /// Finds an example of a change on which the condition had an error, once there is one.
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

    /// Returns the answer with its examples.
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

    /// The maximum number of pushes to which holds are applied.
    static let mostHeld = 400_000
    /// The number of firings between two looks at the time.
    private static let firingsAtATime = 512

    /// The pushes that would remain under the holds.
    private struct Left {
        var outcome = HeldRehearsal.Outcome()
        /// The number of deliveries that pushes of the newest firings would have stood for, by
        /// device, if more than one; the newest firing has index 0.
        var told: [Int: [UInt64: Int64]] = [:]
    }

    /// Shows pushes in the form in which they would have been sent for several deliveries.
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

    /// Returns the pushes that would remain under the holds; `nil` if no holds are asked for, or if
    /// there is no time for it.
    private func left(isOver: () -> Bool) -> Left? {
        guard let firings = answer.tally.firings,
            firings.count * max(1, kindness.count) <= Self.mostHeld
        else { return nil }
        var left = Left()
        for (serial, asked) in kindness {
            var device = HeldRehearsal(of: answer.subject.subscription, to: asked)
            // The indices of the newest firings, by the numbers of their pushes.
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
