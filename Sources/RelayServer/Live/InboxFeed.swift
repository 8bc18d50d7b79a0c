import Live
import RelayModel
import Storage
import Synchronization

/// Sends one client the notifications of its user's inbox: each once, in the inbox's order.
///
/// The inbox has numbers of its own, so these frames are independent of the log. Each of them
/// carries the `syncToken` after which the client continues. The feed reads more once the client
/// has taken what it was sent.
final class InboxFeed: Sendable {
    /// The number of notifications that are read at a time.
    private static let page = 50

    /// The client's name for the query.
    let id: String
    let query: LiveQuery
    /// The number up to which the client knows the inbox.
    private let after: UInt64?
    private let reset: LiveReset?
    private let owner: InboxOwner
    private let device: DeviceID?
    private let number: UInt64
    private let hub: any LiveHub
    private let inboxes: any InboxRegistry
    private let isKept: @Sendable () async throws -> Bool
    private let store: UUIDBytes
    private let state = Mutex(State())

    private struct State {
        var task: Task<Void, Never>?
        var isOver = false
        /// The number at which it began, if the query leaves out existing notifications.
        var begun: UInt64?
    }

    /// Creates a feed for client `number` at `hub`; it runs while the container keeps
    /// notifications.
    init(
        _ declared: DeclaredQuery, of identity: LiveIdentity, to number: UInt64,
        at hub: any LiveHub,
        from inboxes: any InboxRegistry,
        whileKept isKept: @escaping @Sendable () async throws -> Bool, store: UUIDBytes
    ) {
        id = declared.id
        query = declared.query
        after = declared.after
        reset = declared.reset
        owner = InboxOwner(container: identity.settings.key, user: identity.user)
        device = identity.device
        self.number = number
        self.hub = hub
        self.inboxes = inboxes
        self.isKept = isKept
        self.store = store
    }

    /// The number after which the feed began; `nil` is the beginning of what is kept.
    var start: UInt64? {
        if let after { return after }
        return state.withLock { $0.begun }
    }

    /// Sends what there is, and then sends new notifications until the feed ends.
    func begin() async {
        // Subscribed before anything is read, so that no notification is missed in between.
        let news = inboxes.inboxNews(of: owner)
        if let reset { tell(reset) }
        do {
            var place = try await beginning()
            // The answer to a poll contains what there is at this point.
            let isComplete = try await tell(&place)
            let first = place
            let task = Task { [self] in await follow(news, from: first, isComplete) }
            let isOver = state.withLock { state in
                state.task = task
                return state.isOver
            }
            if isOver { task.cancel() }
        } catch {
            gone(ErrorMapping(error).apiError)
        }
    }

    /// Whether the feed has ended.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Ends the feed.
    func end() {
        let task = state.withLock { state in
            state.isOver = true
            return state.task
        }
        task?.cancel()
    }

    /// Returns the number at which to begin: the client's place, the oldest kept notification, or
    /// the end.
    ///
    /// The client is told where the end is, so that it misses nothing if it returns before the
    /// first notification.
    private func beginning() async throws -> UInt64 {
        if let after { return after }
        guard query.beginning == .none, reset == nil else { return 0 }
        var place: UInt64 = 0
        while true {
            let reading = try await inboxes.notifications(request(after: place))
            guard case .page(_, let next, let isComplete) = reading else { return 0 }
            place = next
            if isComplete { break }
        }
        state.withLock { $0.begun = place }
        let frame = LiveFrame(["type": "place", "id": .string(id), "syncToken": token(place)])
        hub.post([.send(number, [frame])])
        return place
    }

    /// Returns the token with which a client continues after the notification of this number.
    private func token(_ sequence: UInt64) -> JSONValue {
        .string(NotificationToken(sequence: sequence).text(owner: owner, store: store))
    }

    private func request(after place: UInt64) -> InboxRequest {
        InboxRequest(
            owner: owner, database: query.inboxDatabase, after: place, limit: Self.page,
            device: device)
    }

    private func follow(_ news: AsyncStream<Void>, from first: UInt64, _ isWhole: Bool) async {
        var place = first
        var isComplete = isWhole
        var news = news.makeAsyncIterator()
        while !Task.isCancelled {
            if isComplete {
                guard await news.next() != nil else { return }
            } else {
                let mark = LiveMark()
                hub.post([.mark(number, mark)])
                await mark.wait()
            }
            do {
                isComplete = try await tell(&place)
            } catch {
                return gone(ErrorMapping(error).apiError)
            }
        }
    }

    /// Sends the next page after `place`; returns whether that is all.
    private func tell(_ place: inout UInt64) async throws -> Bool {
        guard try await isKept() else { throw Self.keptNoMore }
        let reading = try await inboxes.notifications(request(after: place))
        guard case .page(let notifications, let next, let isComplete) = reading else {
            // The notification at `place` is no longer kept.
            tell(.expired)
            place = 0
            return false
        }
        place = next
        let frames = notifications.map { notification in
            LiveFrame([
                "type": "notification", "id": .string(id), "notification": notification.json,
                "syncToken": token(notification.sequence),
            ])
        }
        if !frames.isEmpty {
            hub.post([.send(number, frames), .told(number, notifications.map(\.position))])
        }
        return isComplete
    }

    /// Tells the client that the feed begins with the oldest kept notification.
    ///
    /// The frame `place` gives the new place: a poll may be answered with these frames alone, and a
    /// client that returned with its old place would get the same answer again and again.
    private func tell(_ reset: LiveReset) {
        let frames = [
            LiveFrame(["type": "reset", "id": .string(id), "reason": .string(reset.rawValue)]),
            LiveFrame(["type": "place", "id": .string(id), "syncToken": token(0)]),
        ]
        hub.post([.send(number, frames)])
    }

    private static let keptNoMore = APIError(
        .notFound,
        "this container no longer keeps notifications: an operator can switch this on with `belfry "
            + "containers set --inbox on`",
        details: ["liveError": "notKept"])

    private func gone(_ error: APIError) {
        guard !Task.isCancelled else { return }
        state.withLock { $0.isOver = true }
        var object: JSONObject = ["type": "gone", "id": .string(id)]
        object.members += error.json(uuid: "").members.filter { $0.name != "uuid" }
        hub.post([.send(number, [LiveFrame(object)])])
    }
}
