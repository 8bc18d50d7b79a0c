import Delivery
import Fanout
import RelayModel
import RelayTestKit
import Storage
import Synchronization
import Testing

@testable import RelayServer

/// The changes of one container do not make those of another wait.
@Suite struct IntakeSharesTests {
    private static let busy = Fixtures.container
    private static let quiet = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.Music"), environment: .development)

    /// A simulated log that is followed in order, one change after the other.
    private struct Model {
        var shares = IntakeShares()
        var now = Duration.zero
        /// How long it takes to follow a change of the busy container.
        var each: Duration
        private var head: UInt64 = 0
        private var log:
            [(
                position: UInt64, end: Duration, container: ContainerKey, work: FollowerPulse.Work
            )] = []
        private var free = Duration.zero

        init(each: Duration) { self.each = each }

        /// Appends changes, and returns when they will have been followed.
        @discardableResult
        mutating func append(
            _ container: ContainerKey, changes: Int, each: Duration
        ) -> Duration {
            head += UInt64(changes)
            free = max(free, now) + each * changes
            log.append(
                (
                    head, free, container,
                    FollowerPulse.Work(entries: changes, time: each * changes)
                ))
            _ = shares.appended(
                container, changes: changes, upTo: LogPosition(head))
            return free
        }

        /// How long the follower will take for what is in the log now.
        var unfollowed: Duration { max(.zero, free - now) }

        /// Advances the time, and returns how many requests of the busy container entered.
        mutating func advance(to moment: Duration) -> Int {
            var released = 0
            now = moment
            while let first = log.first, first.end <= moment {
                log.removeFirst()
                let numbers = shares.followed(
                    upTo: LogPosition(first.position), work: [first.container: first.work],
                    at: first.end)
                released += numbers.count
                for _ in numbers { append(IntakeSharesTests.busy, changes: 1, each: each) }
            }
            return released
        }
    }

    /// Lets the busy container send as many changes as it can, and the quiet one a change every 50
    /// ms.
    ///
    /// - Returns: How long the quiet container's changes waited, and how many changes the busy one
    ///   had.
    private func race(
        each: Duration, milliseconds: Int
    ) -> (waits: [Duration], count: Int) {
        var model = Model(each: each)
        _ = model.shares.ask(Self.quiet, changes: 1, at: .zero)
        model.append(Self.quiet, changes: 1, each: .zero)
        var waits: [Duration] = []
        var count = 0
        for moment in 1...milliseconds {
            count += model.advance(to: .milliseconds(moment))
            while model.shares.waiting < 100 {
                guard
                    case .enters = model.shares.ask(Self.busy, changes: 1, at: model.now)
                else { continue }
                model.append(Self.busy, changes: 1, each: each)
                count += 1
            }
            guard moment.isMultiple(of: 50) else { continue }
            #expect(model.shares.ask(Self.quiet, changes: 1, at: model.now) == .enters)
            let end = model.append(Self.quiet, changes: 1, each: .microseconds(30))
            waits.append(end - model.now)
        }
        return (waits, count)
    }

    @Test(arguments: [20, 100, 1000, 4000])
    func `a quiet container's changes wait a few milliseconds for a busy one's`(
        _ microseconds: Int
    ) {
        let each = Duration.microseconds(microseconds)
        let (waits, count) = race(each: each, milliseconds: 5000)
        // The first changes may wait until the width has adapted.
        #expect(waits.dropFirst(10).max() ?? .zero <= .milliseconds(10) + each)
        #expect(waits.max() ?? .zero <= each * 2 * IntakeShares.widths.first + .milliseconds(10))
        // The busy container still gets most of the log's capacity.
        #expect(each * count >= .milliseconds(5000) * 0.85)
    }

    @Test func `a container alone is never held`() {
        var shares = IntakeShares()
        for number in 1...100_000 {
            #expect(shares.ask(Self.busy, changes: 1, at: .milliseconds(number)) == .enters)
        }
        // A minute after the last change of another container it is alone again.
        var later = IntakeShares()
        #expect(later.ask(Self.quiet, changes: 1, at: .zero) == .enters)
        #expect(later.ask(Self.busy, changes: 5000, at: .zero) == .enters)
        #expect(later.ask(Self.busy, changes: 1, at: .seconds(60)) == .waits(1))
        #expect(later.leave(1, of: Self.busy) == true)
        #expect(later.ask(Self.busy, changes: 1, at: .seconds(61)) == .enters)
    }

    /// Sends as much as a container may that is alone for now, for ten seconds.
    ///
    /// - Returns: How long the changes in the log would have kept a newcomer waiting, at most in
    ///   the first and in the last five seconds, and the number of changes.
    private func sendAlone(each: Duration) -> (first: Duration, last: Duration, count: Int) {
        var model = Model(each: each)
        model.shares.hasNeighbors = true
        var (first, last, count) = (Duration.zero, Duration.zero, 0)
        for moment in 1...10_000 {
            count += model.advance(to: .milliseconds(moment))
            // Some hundred senders, each of which waits for its answer.
            while model.shares.waiting < 100, count < 2_000_000 {
                switch model.shares.ask(Self.busy, changes: 1, at: model.now) {
                case .enters:
                    model.append(Self.busy, changes: 1, each: each)
                    count += 1
                case .waits, .refused: break
                }
            }
            let wait = model.unfollowed
            if moment <= 5000 { first = max(first, wait) } else { last = max(last, wait) }
        }
        return (first, last, count)
    }

    @Test(arguments: [
        Duration.microseconds(400), .milliseconds(3), .milliseconds(40),
    ])
    func `a container alone leaves a newcomer's changes at most seconds behind its own`(
        each: Duration
    ) {
        let (first, last, count) = sendAlone(each: each)
        #expect(first <= each * IntakeShares.widthsAlone.first + .milliseconds(1500))
        #expect(last <= .milliseconds(1200))
        // The follower has always had something to follow.
        #expect(each * count >= .milliseconds(9900))
    }

    @Test func `the pace is that of changes which others wait behind`() {
        var pace = FollowingPace()
        #expect(pace.most(in: .seconds(1), cost: nil) == IntakeShares.widthsAlone.first)
        #expect(pace.most(in: .seconds(1), cost: .milliseconds(2)) == 500)
        #expect(pace.most(in: .seconds(1), cost: .microseconds(2)) == 4096)
        // Changes that come one by one do not show how fast they could be followed.
        for moment in 0..<100 { pace.note(1, isMoreLeft: false, at: .seconds(moment)) }
        #expect(pace.perSecond == nil)
        pace.note(5, isMoreLeft: true, at: .seconds(100))
        pace.note(30, isMoreLeft: true, at: .seconds(100) + .milliseconds(30))
        #expect(pace.perSecond == nil)
        pace.note(70, isMoreLeft: true, at: .seconds(100) + .milliseconds(100))
        #expect(pace.perSecond == 1000)
        pace.note(100, isMoreLeft: true, at: .seconds(100) + .milliseconds(300))
        #expect(pace.perSecond == 750)
        #expect(pace.most(in: .seconds(2), cost: .seconds(1)) == 1500)
        // The last ones may have been few, and the follower waited for more.
        pace.note(1, isMoreLeft: false, at: .seconds(110))
        #expect(pace.perSecond == 750)
        pace.note(0, isMoreLeft: true, at: .seconds(111))
        pace.note(10, isMoreLeft: true, at: .seconds(121))
        #expect(pace.perSecond == 375.5)
        #expect(pace.most(in: .milliseconds(1), cost: nil) == IntakeShares.widthsAlone.least)
    }

    /// Otherwise its senders would be refused for what another one posted while it was silent.
    @Test func `a container is not held for changes that others have before its own`() {
        var shares = IntakeShares()
        #expect(shares.ask(Self.busy, changes: 50_000, at: .zero) == .enters)
        _ = shares.appended(Self.busy, changes: 50_000, upTo: LogPosition(50_000))
        _ = shares.followed(upTo: LogPosition(10), at: .seconds(1))
        for position in UInt64(50_001)...55_000 {
            #expect(shares.ask(Self.quiet, changes: 1, at: .seconds(1)) == .enters)
            _ = shares.appended(Self.quiet, changes: 1, upTo: LogPosition(position))
        }
        // Once the others' changes are followed, its own are what others would wait for.
        _ = shares.followed(upTo: LogPosition(50_000), at: .seconds(2))
        #expect(shares.ask(Self.quiet, changes: 1, at: .seconds(2)) == .waits(1))
    }

    @Test func `a container with expensive changes is held behind others' changes, too`() {
        var shares = IntakeShares()
        #expect(shares.ask(Self.quiet, changes: 1, at: .zero) == .enters)
        _ = shares.appended(Self.quiet, changes: 1, upTo: LogPosition(1))
        let work = FollowerPulse.Work(entries: 1, time: .milliseconds(4))
        _ = shares.followed(upTo: LogPosition(1), work: [Self.quiet: work], at: .zero)
        #expect(shares.ask(Self.busy, changes: 50_000, at: .zero) == .enters)
        _ = shares.appended(Self.busy, changes: 50_000, upTo: LogPosition(50_001))
        #expect(shares.ask(Self.quiet, changes: 1, at: .seconds(1)) == .enters)
        _ = shares.appended(Self.quiet, changes: 1, upTo: LogPosition(50_002))
        #expect(shares.ask(Self.quiet, changes: 1, at: .seconds(1)) == .waits(1))
    }

    @Test func `a request that appended nothing returns its share`() {
        var shares = IntakeShares()
        #expect(shares.ask(Self.quiet, changes: 1, at: .zero) == .enters)
        #expect(shares.ask(Self.busy, changes: 1000, at: .zero) == .enters)
        #expect(shares.ask(Self.busy, changes: 1, at: .zero) == .waits(1))
        #expect(shares.ask(Self.busy, changes: 1, at: .zero) == .waits(2))
        #expect(shares.leave(3, of: Self.busy) == false)
        let released = shares.appended(Self.busy, changes: 1000, upTo: nil)
        #expect(released == [1, 2])
        #expect(shares.leave(1, of: Self.busy) == false)
    }

    @Test func `beside others a container has few open pushes at a slow gateway`() {
        var shares = IntakeShares()
        #expect(shares.ask(Self.quiet, changes: 1, at: .zero) == .enters)
        var now = Duration.zero
        var waiting: [UInt64] = []
        var position: UInt64 = 0
        var most = 0
        var open = 0
        // Each change makes ten pushes, and the gateway answers one every 0.1 ms.
        func enter() {
            position += 1
            _ = shares.appended(Self.busy, changes: 1, upTo: LogPosition(position))
            shares.began(Self.busy, pushes: 10)
            open += 10
            waiting += shares.followed(upTo: LogPosition(position), at: now)
        }
        for step in 1...20_000 {
            now = .microseconds(100 * step)
            if step.isMultiple(of: 10) {
                switch shares.ask(Self.busy, changes: 1, at: now) {
                case .enters: enter()
                case .waits, .refused: break
                }
            }
            while waiting.popLast() != nil { enter() }
            guard open > 0 else { continue }
            waiting += shares.ended([
                PushEnd(container: Self.busy, latency: .microseconds(100 * open + 1000))
            ])
            open -= 1
            if step > 10_000 { most = max(most, open) }
        }
        // About as many as a gateway has open whose answers take twice as long as the fastest one,
        // 1.1 ms, plus 2 ms; and one change more than fits.
        #expect((5...60).contains(most))
    }

    @Test func `a container with cheap changes is not held for another's cost`() {
        var shares = IntakeShares()
        _ = shares.ask(Self.quiet, changes: 1, at: .zero)
        _ = shares.appended(Self.quiet, changes: 1, upTo: LogPosition(1))
        _ = shares.ask(Self.busy, changes: 1, at: .zero)
        _ = shares.appended(Self.busy, changes: 1, upTo: LogPosition(2))
        let work = [
            Self.quiet: FollowerPulse.Work(entries: 1, time: .microseconds(50)),
            Self.busy: FollowerPulse.Work(entries: 1, time: .seconds(1)),
        ]
        #expect(shares.followed(upTo: LogPosition(2), work: work, at: .seconds(1)) == [])
        #expect(shares.ask(Self.busy, changes: 1, at: .seconds(1)) == .enters)
        #expect(shares.ask(Self.busy, changes: 1, at: .seconds(1)) == .waits(1))
        for _ in 1...63 {
            #expect(shares.ask(Self.quiet, changes: 1, at: .seconds(1)) == .enters)
        }
    }

    @Test func `a container with dear changes stays dear after some silence`() {
        func entering(after silence: Duration, each time: Duration) -> Int {
            var shares = IntakeShares()
            _ = shares.ask(Self.quiet, changes: 1, at: .zero)
            _ = shares.ask(Self.busy, changes: 1, at: .zero)
            _ = shares.appended(Self.quiet, changes: 1, upTo: LogPosition(1))
            _ = shares.appended(Self.busy, changes: 1, upTo: LogPosition(2))
            let work = [Self.busy: FollowerPulse.Work(entries: 1, time: time)]
            _ = shares.followed(upTo: LogPosition(2), work: work, at: .seconds(1))
            _ = shares.followed(upTo: nil, at: silence)
            _ = shares.ask(Self.quiet, changes: 1, at: silence)
            return (0..<20).count { _ in
                shares.ask(Self.busy, changes: 1, at: silence) == .enters
            }
        }
        #expect(entering(after: .seconds(30), each: .seconds(1)) == 1)
        #expect(entering(after: .seconds(600), each: .seconds(1)) == 1)
        #expect(entering(after: .seconds(7200), each: .seconds(1)) == 16)
        #expect(entering(after: .seconds(600), each: .microseconds(1)) == 16)
    }

    @Test func `divisible requests come in parts if they may be dear`() {
        func portion(after time: Duration?, besideOthers: Bool = true) -> Int {
            var shares = IntakeShares()
            if besideOthers { _ = shares.ask(Self.quiet, changes: 1, at: .zero) }
            guard let time else { return shares.portion(of: Self.busy, at: .zero) }
            _ = shares.ask(Self.busy, changes: 1, at: .zero)
            _ = shares.appended(Self.busy, changes: 1, upTo: LogPosition(1))
            let work = [Self.busy: FollowerPulse.Work(entries: 1, time: time)]
            _ = shares.followed(upTo: LogPosition(1), work: work, at: .zero)
            return shares.portion(of: Self.busy, at: .zero)
        }
        #expect(portion(after: nil) == 16)
        #expect(portion(after: .milliseconds(190)) == 1)
        #expect(portion(after: .milliseconds(1)) == 5)
        // Cheap changes come in parts that take as long to follow as others may wait.
        #expect(portion(after: .microseconds(50)) == 100)
        #expect(portion(after: .microseconds(300)) == 64)
        #expect(portion(after: .microseconds(1)) == IntakeShares.widths.most)
        #expect(portion(after: .milliseconds(190), besideOthers: false) == .max)
    }

    @Test func `after a dear change sixteen may be unfollowed however cheap others are`() {
        func entering(after silence: Duration, dear: Int) -> (count: Int, portion: Int) {
            var shares = IntakeShares()
            _ = shares.ask(Self.quiet, changes: 1, at: .zero)
            _ = shares.ask(Self.busy, changes: 1, at: .zero)
            _ = shares.appended(Self.quiet, changes: 1, upTo: LogPosition(1))
            _ = shares.appended(Self.busy, changes: 1, upTo: LogPosition(2))
            let first = [
                Self.busy: FollowerPulse.Work(entries: 1, time: .milliseconds(100), dear: dear)
            ]
            _ = shares.followed(upTo: LogPosition(2), work: first, at: .zero)
            // On average the changes are cheap by now.
            let cheap = FollowerPulse.Work(entries: 1000, time: .milliseconds(20))
            _ = shares.followed(upTo: nil, work: [Self.busy: cheap], at: .zero)
            _ = shares.followed(upTo: nil, at: silence)
            _ = shares.ask(Self.quiet, changes: 1, at: silence)
            let portion = shares.portion(of: Self.busy, at: silence)
            let count = (0..<60).count { _ in
                shares.ask(Self.busy, changes: 1, at: silence) == .enters
            }
            return (count, portion)
        }
        let dear = entering(after: .seconds(50), dear: 1)
        #expect(dear.count == 16 && dear.portion == 16)
        let remembered = entering(after: .seconds(3000), dear: 1)
        #expect(remembered.count == 16 && remembered.portion == 16)
        let never = entering(after: .seconds(50), dear: 0)
        #expect(never.count > 16 && never.portion == 250)
    }

    @Test func `foreign and earlier pushes count for no container`() {
        var shares = IntakeShares()
        let end = PushEnd(container: Self.busy, latency: .milliseconds(1))
        #expect(shares.ended([end, end]) == [])
        shares.began(Self.busy, pushes: 5000)
        #expect(shares.ask(Self.quiet, changes: 1, at: .zero) == .enters)
        #expect(shares.ask(Self.busy, changes: 1, at: .zero) == .enters)
        _ = shares.appended(Self.busy, changes: 1, upTo: LogPosition(1))
        #expect(shares.followed(upTo: LogPosition(1), at: .zero) == [])
        #expect(shares.ended([end, end]) == [])
        shares.began(Self.busy, pushes: 64)
        #expect(shares.ask(Self.busy, changes: 1, at: .zero) == .waits(1))
        #expect(shares.ended([end]) == [1])
    }

    @Test func `the waiting line is bounded`() {
        var settings = IntakeShares.Settings()
        settings.line = 2
        var shares = IntakeShares(settings)
        #expect(shares.ask(Self.quiet, changes: 1, at: .zero) == .enters)
        #expect(shares.ask(Self.busy, changes: 1000, at: .zero) == .enters)
        #expect(shares.ask(Self.busy, changes: 1, at: .zero) == .waits(1))
        #expect(shares.ask(Self.busy, changes: 1, at: .zero) == .waits(2))
        #expect(shares.ask(Self.busy, changes: 1, at: .zero) == .refused)
        #expect(shares.ask(Self.quiet, changes: 1, at: .zero) == .enters)
    }
}

@Suite struct IntakeTurnsTests {
    private static let busy = Fixtures.container
    private static let quiet = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.Music"), environment: .development)

    @Test func `a held request enters when the log is followed`() async throws {
        let clock = TestClock()
        let turns = IntakeTurns(clock: clock)
        _ = try await turns.run(Self.quiet, changes: 1) { ((), LogPosition(1)) }
        _ = try await turns.run(Self.busy, changes: 1000) { ((), LogPosition(1001)) }
        let held = Task {
            try await turns.run(Self.busy, changes: 1) { ("in", LogPosition(1002)) }
        }
        #expect(await Turns.yield { clock.sleeperCount == 1 })
        let other = try await turns.run(Self.quiet, changes: 1) { ("at once", LogPosition(1003)) }
        #expect(other == "at once")
        turns.followed(upTo: LogPosition(1001))
        #expect(try await held.value == "in")
    }

    @Test func `additional changes of a request count`() async throws {
        let clock = TestClock()
        let turns = IntakeTurns(clock: clock)
        _ = try await turns.run(Self.quiet, changes: 1) { ((), LogPosition(1)) }
        _ = try await turns.run(Self.busy, changes: 1, besides: { _ in 99 }) {
            ((), LogPosition(101))
        }
        let held = Task { try await turns.run(Self.busy, changes: 1) { ("in", LogPosition(102)) } }
        #expect(await Turns.yield { clock.sleeperCount == 1 })
        turns.followed(upTo: LogPosition(101))
        #expect(try await held.value == "in")
        // A container that appended nothing has nothing unfollowed.
        _ = try await turns.run(Self.busy, changes: 1, besides: { _ in 99 }) { ((), nil) }
        turns.followed(upTo: LogPosition(102))
        #expect(try await turns.run(Self.busy, changes: 1) { ("again", nil) } == "again")
    }

    @Test func `a request that is held too long is refused with its bound`() async throws {
        let clock = TestClock()
        let refusals = Atomic(0)
        let turns = IntakeTurns(
            clock: clock, patience: .seconds(2),
            refused: { refusals.add(1, ordering: .relaxed) })
        _ = try await turns.run(Self.quiet, changes: 1) { ((), LogPosition(1)) }
        _ = try await turns.run(Self.busy, changes: 1000) { ((), LogPosition(1001)) }
        let held = Task { try await turns.run(Self.busy, changes: 1) { ((), nil) } }
        #expect(await Turns.yield { clock.sleeperCount == 1 })
        clock.advance(by: .seconds(2))
        let error = await #expect(throws: StorageError.self) { try await held.value }
        guard case .bounded(.share, _)? = error else {
            Issue.record("refused with \(String(describing: error))")
            return
        }
        #expect(refusals.load(ordering: .relaxed) == 1)
    }

    @Test func `the parts of a request together take at most ten seconds`() throws {
        let clock = TestClock()
        let refusals = Atomic(0)
        let turns = IntakeTurns(
            clock: clock, refused: { refusals.add(1, ordering: .relaxed) })
        var time = PartedTime(turns)
        clock.advance(by: .seconds(60))
        try time.check()
        time.note()
        clock.advance(by: .seconds(9))
        time.note()
        try time.check()
        clock.advance(by: .seconds(2))
        let late = time
        #expect(throws: StorageError.self) { try late.check() }
        #expect(refusals.load(ordering: .relaxed) == 1)
        // If nothing is followed, no request waits either.
        var alone = PartedTime(nil)
        alone.note()
        try alone.check()
    }

    @Test func `a caller that stops waiting leaves the line`() async throws {
        let turns = IntakeTurns(clock: TestClock())
        _ = try await turns.run(Self.quiet, changes: 1) { ((), LogPosition(1)) }
        _ = try await turns.run(Self.busy, changes: 1000) { ((), LogPosition(1001)) }
        let gone = Task { try await turns.run(Self.busy, changes: 1) { ((), nil) } }
        gone.cancel()
        await #expect(throws: (any Error).self) { try await gone.value }
        turns.followed(upTo: LogPosition(1001))
        let next = try await turns.run(Self.busy, changes: 1) { ("next", nil) }
        #expect(next == "next")
    }
}
