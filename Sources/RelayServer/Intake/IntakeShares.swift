import Delivery
import DequeModule
import Fanout
import Gateway
import RelayModel

/// Decides how many changes each container may have in the log that are not followed yet, because
/// other containers write too, or may begin to.
///
/// The log is followed in its order, so a change waits for everything that other containers have
/// before it. A container that appends faster than the log is followed must therefore wait. The
/// number of its unfollowed changes is limited so that others wait at most ``Settings/wait``, given
/// the time that the follower takes for each of its changes. So a dear change (one that is slow to
/// match) counts as much as many cheap ones, and the time that other containers' changes take does
/// not count.
///
/// A container without competition has the whole log, and a burst is appended as fast as the disk
/// allows. But if there are other containers at all, one of them may write at any moment. So a
/// container that is alone for now may have as many unfollowed changes as were followed in
/// ``Settings/waitForNewcomer`` lately. Without this bound, a newcomer's first change waited for
/// minutes.
///
/// Behind the log is the window of deliveries, which all containers share too. So beside others a
/// container has only as many pushes at the gateway as keep the gateway's answers fast
/// (``Gateway/PushPace``), and its changes in the log count for the pushes that they will cause.
///
/// It is a value without a clock: times are passed in as durations since an arbitrary beginning.
struct IntakeShares: Sendable {
    /// The limits.
    struct Settings: Sendable, Hashable {
        /// How long the follower may take for the changes that a container has in the log beside
        /// others.
        ///
        /// This is the delay that one container adds to another's changes.
        var wait = Duration.milliseconds(5)
        /// How long the follower may take for the changes that a container has in the log while no
        /// other one writes.
        var waitForNewcomer = Duration.seconds(1)
        /// The maximum number of waiting requests of one container.
        var line = 256
        /// The maximum number of a container's pushes at the gateway, which is a part of the shared
        /// window.
        var pushes = 1024
    }

    /// The decision about a request.
    enum Answer: Sendable, Hashable {
        /// The request may append now.
        case enters
        /// The request waits, under this number.
        case waits(UInt64)
        /// The request is refused, because too many wait already.
        case refused
    }

    /// The number of unfollowed changes that a new container may have, and the maximum.
    static let widths = (first: 16, most: 4096)
    /// The numbers of unfollowed changes of a container that is alone for now: at least, before
    /// anything is known of its changes, and at most before any of them had to wait.
    static let widthsAlone = (least: 16, first: 64, unmeasured: 4096.0)
    /// The smallest part of a divided request if the container's changes are cheap.
    static let leastPart = 64
    /// How long it is remembered that an inactive container has dear changes.
    static let longRemembrance = Duration.seconds(3600)

    struct Passed: Sendable {
        let position: LogPosition
        let changes: Int
    }

    struct Share: Sendable {
        var width = IntakeShares.widths.first
        /// The number of changes that were admitted and are not followed.
        var open = 0
        /// Those of the open changes that are in the log.
        var passed: Deque<Passed> = []
        var line: Deque<(number: UInt64, changes: Int)> = []
        var seen: Duration
        /// The follower's average time for one change, if it is known.
        var cost: Duration?
        /// When one of the container's changes last took too long for the log's turn; forgotten
        /// after an hour.
        var dearAt: Duration?
        /// The container's pushes at the gateway.
        var pushes: PushPace
        /// The pushes that began since changes were last followed, and the average number of pushes
        /// of one change.
        var begun = 0
        var pushesPerChange = 1.0
        var pace = FollowingPace()
    }

    private let settings: Settings
    /// Whether there are several containers, whether they write or not.
    var hasNeighbors = false
    private var shares: [ContainerKey: Share] = [:]
    /// The latest moment that was passed in.
    private var latest = Duration.zero
    private var contention = Contention()
    private var nextNumber: UInt64 = 0
    private var followedUpTo = LogPosition.start
    /// The containers whose changes are judged beside the log, each with its first change that is
    /// not worked.
    private var behind: [ContainerKey: LogPosition] = [:]

    init(_ settings: Settings = Settings()) {
        self.settings = settings
    }

    /// The number of requests that wait.
    var waiting: Int { shares.values.reduce(0) { $0 + $1.line.count } }

    /// Decides about a new request with `changes` changes.
    mutating func ask(
        _ container: ContainerKey, changes: Int, at now: Duration
    ) -> Answer {
        var share =
            shares[container]
            ?? Share(
                seen: now, pushes: PushPace(most: settings.pushes))
        share.seen = now
        latest = now
        contention.note(container, at: now)
        defer { shares[container] = share }
        if share.line.isEmpty, hasRoom(share, container) {
            share.open += changes
            return .enters
        }
        guard share.line.count < settings.line else { return .refused }
        nextNumber += 1
        share.line.append((nextNumber, changes))
        return .waits(nextNumber)
    }

    /// Returns how many changes of a divisible request may be appended at a time.
    ///
    /// Other containers wait for everything that is appended at once. So a part has no more changes
    /// than the container may have unfollowed, as long as their cost is unknown. A container that
    /// had only cheap changes may still send dear ones; this is known after their first part.
    func portion(of container: ContainerKey, at now: Duration) -> Int {
        guard contention.isContended(by: container, at: now) else {
            guard hasNeighbors else { return .max }
            guard let share = shares[container] else { return Self.leastPart }
            return max(Self.leastPart, mostAlone(share))
        }
        guard let share = shares[container] else { return Self.widths.first }
        let isCheap =
            share.cost != nil && share.dearAt == nil && share.width >= Self.widths.first
        return isCheap ? max(Self.leastPart, share.width) : max(1, share.mostOpen)
    }

    /// Ends a request that was admitted.
    ///
    /// `position` is that of its last change, or `nil` if none was appended. `besides` says how
    /// many more changes it had than it asked for (negative for fewer).
    ///
    /// - Returns: The requests that may append now.
    mutating func appended(
        _ container: ContainerKey, changes: Int, besides: Int = 0, upTo position: LogPosition?
    ) -> [UInt64] {
        guard var share = shares[container] else { return [] }
        share.open += besides
        let changes = changes + besides
        if let position, !isFollowed(position, of: container) {
            // Commits finish in the order of the log, but their callers may arrive here in any
            // order.
            let place = share.passed.lastIndex { $0.position < position }.map { $0 + 1 } ?? 0
            share.passed.insert(Passed(position: position, changes: changes), at: place)
        } else {
            share.open -= changes
        }
        let released = release(&share, container)
        shares[container] = share
        return released
    }

    /// Returns whether one more request of a container may append.
    private func hasRoom(_ share: Share, _ container: ContainerKey) -> Bool {
        if contention.isContended(by: container, at: latest) {
            return share.hasRoom(followedUpTo)
        }
        return !hasNeighbors || share.open < mostAlone(share)
    }

    /// The number of unfollowed changes that a container may have that is alone for now.
    private func mostAlone(_ share: Share) -> Int {
        share.pace.most(in: settings.waitForNewcomer, cost: share.cost)
    }

    /// Admits waiting requests as long as there is room.
    private func release(_ share: inout Share, _ container: ContainerKey) -> [UInt64] {
        var released: [UInt64] = []
        while hasRoom(share, container), let next = share.line.popFirst() {
            share.open += next.changes
            released.append(next.number)
        }
        return released
    }

    /// Returns whether the log is followed up to a change of a container.
    private func isFollowed(_ position: LogPosition, of container: ContainerKey) -> Bool {
        guard position <= followedUpTo else { return false }
        return behind[container].map { position < $0 } ?? true
    }

    /// Records that the log is followed up to `position`, if it is given, and the time that the
    /// entries of each container took.
    ///
    /// For the containers in `behind`, it is followed only to before the given position.
    ///
    /// - Returns: The requests that may append now.
    mutating func followed(
        upTo position: LogPosition?, behind: [ContainerKey: LogPosition] = [:],
        work: [ContainerKey: FollowerPulse.Work] = [:], at now: Duration
    ) -> [UInt64] {
        followedUpTo = max(followedUpTo, position ?? .start)
        latest = now
        self.behind = behind
        for (container, work) in work {
            shares[container]?.learn(work, settings.wait)
            if work.dear > 0 { shares[container]?.dearAt = now }
        }
        var released: [UInt64] = []
        for container in Array(shares.keys) {
            guard var share = shares.removeValue(forKey: container) else { continue }
            var count = 0
            while let first = share.passed.first, isFollowed(first.position, of: container) {
                share.passed.removeFirst()
                share.open -= first.changes
                share.learnPushes(of: first.changes)
                count += first.changes
            }
            share.pace.note(count, isMoreLeft: !share.passed.isEmpty, at: now)
            if let dearAt = share.dearAt, now - dearAt > Self.longRemembrance {
                share.dearAt = nil
            }
            released += release(&share, container)
            // A container that was silent for long is forgotten, with what was learned of it. One
            // with dear changes is remembered longer; otherwise its dear changes would be admitted
            // in bulk again every minute.
            let isDear = share.width < Self.widths.first || share.dearAt != nil
            let isGone =
                share.open == 0 && share.pushes.open == 0
                && now - share.seen > (isDear ? Self.longRemembrance : Contention.remembrance)
            if !isGone { shares[container] = share }
        }
        return released
    }

    /// Records that pushes of a container are handed to the gateway.
    mutating func began(_ container: ContainerKey, pushes count: Int) {
        shares[container]?.pushes.begin(count)
        shares[container]?.begun += count
    }

    /// Records that pushes have ended.
    ///
    /// - Returns: The requests that may append now.
    mutating func ended(_ ends: [PushEnd]) -> [UInt64] {
        var released: [UInt64] = []
        var rest = ends[...]
        while let container = rest.first?.container {
            let others = rest.drop { $0.container == container }
            if var share = shares.removeValue(forKey: container) {
                for end in rest.prefix(rest.count - others.count) {
                    share.pushes.end(after: end.latency)
                }
                released += release(&share, container)
                shares[container] = share
            }
            rest = others
        }
        return released
    }

    /// Removes a waiting request; returns `false` if it was admitted meanwhile.
    mutating func leave(_ number: UInt64, of container: ContainerKey) -> Bool {
        let place = shares[container]?.line.firstIndex { $0.number == number }
        guard let place else { return false }
        shares[container]?.line.remove(at: place)
        return true
    }
}

extension IntakeShares.Share {
    /// Returns whether one more request may append, while the log is followed up to `followed`.
    ///
    /// If none is open, any request may, however large, as long as the gateway has room.
    func hasRoom(_ followed: LogPosition) -> Bool {
        guard pushes.room > 0 else { return false }
        return open == 0
            || (open < mostOpen && Double(open) * pushesPerChange < Double(pushes.room))
            || waitsForOthers(followed)
    }

    /// Returns whether others have more changes in the log before the container's first request
    /// than it has itself.
    ///
    /// So it is not this container that keeps others waiting. What others posted while it was
    /// silent, and they were alone, must not cause its changes to be refused. A container with
    /// expensive changes gets no more room by this.
    private func waitsForOthers(_ followed: LogPosition) -> Bool {
        guard dearAt == nil, cost == nil || width >= IntakeShares.widths.first,
            let first = passed.first
        else { return false }
        let own = UInt64(clamping: open + first.changes)
        return first.position.rawValue > followed.rawValue + own
    }

    /// The number of unfollowed changes that the container may have.
    ///
    /// If some of its changes are dear, the average cost says little about the next ones: after
    /// many cheap changes, hundreds of dear ones would be admitted at once.
    var mostOpen: Int { dearAt == nil ? width : min(width, IntakeShares.widths.first) }

    /// Learns how many pushes a change causes, from changes that are followed now.
    mutating func learnPushes(of changes: Int) {
        // An average over about the last fifty changes.
        let weight = min(1, Double(max(changes, 1)) / 50)
        pushesPerChange += weight * (Double(begun) / Double(max(changes, 1)) - pushesPerChange)
        begun = 0
    }

    /// Learns the cost of a change from the time that entries took.
    mutating func learn(_ work: FollowerPulse.Work, _ goal: Duration) {
        guard work.entries > 0 else { return }
        let each = work.time / work.entries
        // An average over about the last eight reports, so that the first dear ones count.
        let weight = max(1 / 8, min(1, Double(work.entries) / 64))
        let cost = cost.map { $0 + (each - $0) * weight } ?? each
        self.cost = cost
        let most = Double(IntakeShares.widths.most)
        width = Int(max(1, min(most, goal / max(cost, .nanoseconds(1)))))
    }
}
