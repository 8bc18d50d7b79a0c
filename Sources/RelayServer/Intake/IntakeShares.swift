import Delivery
import DequeModule
import Fanout
import Gateway
import RelayModel

/// How much of the log each container may have that is not followed yet, while others write too.
///
/// The log is followed in its order: what one container has in it before another's change, that
/// change waits for. So a container that appends faster than it is followed is made to wait.
/// How many of its changes may be unfollowed follows from what the follower takes for each of them:
/// so many as make others wait for ``Settings/wait``. A change that is dear to match thereby counts
/// for many that are cheap, and what others' changes take is not held against it. With nobody
/// beside it, a container has the log to itself, and a burst goes in as quickly as the disk takes
/// it.
///
/// Behind the log there is the window of deliveries, which all share as well: so beside others a
/// container has as many pushes with the gateway as make its answers wait little there
/// (``Gateway/PushPace``), and what it has in the log counts for the pushes that will come of it.
///
/// A value without a clock: moments come in, as durations since any beginning.
struct IntakeShares: Sendable {
    /// What can be set.
    struct Settings: Sendable, Hashable {
        /// How long the follower may take for what a container has in the log beside others.
        ///
        /// It is what one container adds to the way of another's changes.
        var wait = Duration.milliseconds(5)
        /// Requests of one container that wait.
        var line = 256
        /// The most pushes that may be with the gateway: a part of the window that all share.
        var pushes = 1024
    }

    /// What becomes of a request.
    enum Answer: Sendable, Hashable {
        /// It goes in.
        case enters
        /// It waits, under this number.
        case waits(UInt64)
        /// Too many wait already.
        case refused
    }

    /// Unfollowed changes at the beginning, and the most.
    static let widths = (first: 16, most: 4096)
    /// The fewest changes that a part of a request has whose container's changes are cheap.
    static let leastPart = 64
    /// How long it is remembered of a container that is silent that its changes are dear.
    static let longRemembrance = Duration.seconds(3600)

    struct Passed: Sendable {
        let position: LogPosition
        let changes: Int
    }

    struct Share: Sendable {
        var width = IntakeShares.widths.first
        /// Changes that went in and are not followed.
        var open = 0
        /// Those of them that are in the log.
        var passed: Deque<Passed> = []
        var line: Deque<(number: UInt64, changes: Int)> = []
        var seen: Duration
        /// What the follower takes for one change, as far as it is known.
        var cost: Duration?
        /// When a change of it last took too long for the log's turn; forgotten after an hour.
        var dearAt: Duration?
        /// What is with the gateway.
        var pushes: PushPace
        /// Pushes that began since changes were last followed, and how many one change makes.
        var begun = 0
        var pushesPerChange = 1.0
    }

    private let settings: Settings
    private var shares: [ContainerKey: Share] = [:]
    private var contention = Contention()
    private var nextNumber: UInt64 = 0
    private var followedUpTo = LogPosition.start
    /// Of containers of which changes are judged beside the log, the first that is not worked.
    private var behind: [ContainerKey: LogPosition] = [:]

    init(_ settings: Settings = Settings()) {
        self.settings = settings
    }

    /// How many requests wait.
    var waiting: Int { shares.values.reduce(0) { $0 + $1.line.count } }

    /// A request with so many changes has come in.
    mutating func ask(
        _ container: ContainerKey, changes: Int, at now: Duration
    ) -> Answer {
        var share =
            shares[container]
            ?? Share(
                seen: now, pushes: PushPace(most: settings.pushes))
        share.seen = now
        contention.note(container, at: now)
        defer { shares[container] = share }
        if share.line.isEmpty,
            !contention.isContended(by: container, at: now) || share.hasRoom
        {
            share.open += changes
            return .enters
        }
        guard share.line.count < settings.line else { return .refused }
        nextNumber += 1
        share.line.append((nextNumber, changes))
        return .waits(nextNumber)
    }

    /// How many changes of a request that can be parted are to go in at a time.
    ///
    /// Others wait for all that goes in at once: so no more than the container may have unfollowed,
    /// as long as nobody knows what they take too. Who has had cheap changes only may send dear
    /// ones all the same: after the first part of them that is known.
    func portion(of container: ContainerKey, at now: Duration) -> Int {
        guard contention.isContended(by: container, at: now) else { return .max }
        guard let share = shares[container] else { return Self.widths.first }
        let isCheap =
            share.cost != nil && share.dearAt == nil && share.width >= Self.widths.first
        return isCheap ? max(Self.leastPart, share.width) : max(1, share.mostOpen)
    }

    /// A request that went in has come to its end: its last change stands at `position`, or none
    /// was appended.
    ///
    /// `besides` says how many more it had than it asked for, below 0 how many fewer.
    ///
    /// - Returns: The requests that go in now.
    mutating func appended(
        _ container: ContainerKey, changes: Int, besides: Int = 0, upTo position: LogPosition?
    ) -> [UInt64] {
        guard var share = shares[container] else { return [] }
        share.open += besides
        let changes = changes + besides
        if let position, !isFollowed(position, of: container) {
            // Commits answer in the order of the log, but callers come here in any.
            let place = share.passed.lastIndex { $0.position < position }.map { $0 + 1 } ?? 0
            share.passed.insert(Passed(position: position, changes: changes), at: place)
        } else {
            share.open -= changes
        }
        let released = share.release()
        shares[container] = share
        return released
    }

    /// Whether the log is followed up to a change of a container.
    private func isFollowed(_ position: LogPosition, of container: ContainerKey) -> Bool {
        guard position <= followedUpTo else { return false }
        return behind[container].map { position < $0 } ?? true
    }

    /// The log is followed up to `position`, if it is said, and what whose entries took for that.
    ///
    /// Of the containers in `behind` it is followed up to before the position that stands there.
    ///
    /// - Returns: The requests that go in now.
    mutating func followed(
        upTo position: LogPosition?, behind: [ContainerKey: LogPosition] = [:],
        work: [ContainerKey: FollowerPulse.Work] = [:], at now: Duration
    ) -> [UInt64] {
        followedUpTo = max(followedUpTo, position ?? .start)
        self.behind = behind
        for (container, work) in work {
            shares[container]?.learn(work, settings.wait)
            if work.dear > 0 { shares[container]?.dearAt = now }
        }
        var released: [UInt64] = []
        for container in Array(shares.keys) {
            guard var share = shares.removeValue(forKey: container) else { continue }
            while let first = share.passed.first, isFollowed(first.position, of: container) {
                share.passed.removeFirst()
                share.open -= first.changes
                share.learnPushes(of: first.changes)
            }
            if let dearAt = share.dearAt, now - dearAt > Self.longRemembrance {
                share.dearAt = nil
            }
            released += share.release()
            // Whoever has been silent for long is forgotten, with what was learned of it: of whose
            // changes are dear, later, or these would come as many at once every minute anew.
            let isDear = share.width < Self.widths.first || share.dearAt != nil
            let isGone =
                share.open == 0 && share.pushes.open == 0
                && now - share.seen > (isDear ? Self.longRemembrance : Contention.remembrance)
            if !isGone { shares[container] = share }
        }
        return released
    }

    /// Pushes of a container are handed to the gateway.
    mutating func began(_ container: ContainerKey, pushes count: Int) {
        shares[container]?.pushes.begin(count)
        shares[container]?.begun += count
    }

    /// Pushes have ended.
    ///
    /// - Returns: The requests that go in now.
    mutating func ended(_ ends: [PushEnd]) -> [UInt64] {
        var released: [UInt64] = []
        var rest = ends[...]
        while let container = rest.first?.container {
            let others = rest.drop { $0.container == container }
            if var share = shares.removeValue(forKey: container) {
                for end in rest.prefix(rest.count - others.count) {
                    share.pushes.end(after: end.latency)
                }
                released += share.release()
                shares[container] = share
            }
            rest = others
        }
        return released
    }

    /// Takes a request out of its line; `false` if it has gone in meanwhile.
    mutating func leave(_ number: UInt64, of container: ContainerKey) -> Bool {
        let place = shares[container]?.line.firstIndex { $0.number == number }
        guard let place else { return false }
        shares[container]?.line.remove(at: place)
        return true
    }
}

extension IntakeShares.Share {
    /// Whether one more request may go in; one at a time may, however large, once there is room at
    /// the gateway.
    var hasRoom: Bool {
        guard pushes.room > 0 else { return false }
        return open == 0
            || (open < mostOpen && Double(open) * pushesPerChange < Double(pushes.room))
    }

    /// The unfollowed changes that it may have.
    ///
    /// What its changes took on the average says little of the next ones where some are dear: after
    /// many cheap ones, hundreds of dear ones would go in at once.
    var mostOpen: Int { dearAt == nil ? width : min(width, IntakeShares.widths.first) }

    /// Learns how many pushes changes make, from some that are followed now.
    mutating func learnPushes(of changes: Int) {
        // The last fifty or so count.
        let weight = min(1, Double(max(changes, 1)) / 50)
        pushesPerChange += weight * (Double(begun) / Double(max(changes, 1)) - pushesPerChange)
        begun = 0
    }

    /// Learns what entries took.
    mutating func learn(_ work: FollowerPulse.Work, _ goal: Duration) {
        guard work.entries > 0 else { return }
        let each = work.time / work.entries
        // The last eight or so count, so that the first dear ones do.
        let weight = max(1 / 8, min(1, Double(work.entries) / 64))
        let cost = cost.map { $0 + (each - $0) * weight } ?? each
        self.cost = cost
        let most = Double(IntakeShares.widths.most)
        width = Int(max(1, min(most, goal / max(cost, .nanoseconds(1)))))
    }

    /// Lets in from the line what there is room for.
    mutating func release() -> [UInt64] {
        var released: [UInt64] = []
        while hasRoom, let next = line.popFirst() {
            open += next.changes
            released.append(next.number)
        }
        return released
    }
}
