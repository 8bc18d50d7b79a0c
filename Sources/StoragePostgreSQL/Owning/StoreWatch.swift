import PostgresLink
package import Storage
package import StorageSQL
import Synchronization

/// Watches who owns a store for a process that stands by for it, and opens the store.
///
/// libpq blocks, so everything happens on a thread of its own, one call after the other.
package final class StoreWatch: Sendable {
    /// The state of the thread.
    private final class ThreadState: @unchecked Sendable {
        let session: PostgresSession
        let claimant: StoreClaimant
        let standby: @Sendable () -> StoreNode.Standby?
        let census: StoreCensus?
        var connection: PostgresConnection?
        var announced: Duration?
        var announcements = 0
        /// How other relays' settings differ; any thread may read it.
        let disagreements = Mutex<[String]>([])

        init(
            _ session: PostgresSession, _ claimant: StoreClaimant, _ census: StoreCensus?,
            _ standby: @escaping @Sendable () -> StoreNode.Standby?
        ) {
            self.session = session
            self.claimant = claimant
            self.standby = standby
            self.census = census
        }

        func connected() throws -> PostgresConnection {
            if let connection, session.isCurrent(connection) { return connection }
            let connection = try session.connect()
            try connection.query(StoreWatch.limits)
            self.connection = connection
            return connection
        }
    }

    /// The server's limits, by which it reports a table that is locked for long before this client
    /// gives up.
    private static let limits = "SET lock_timeout = '1s'; SET statement_timeout = '1500ms'"

    private let thread: PostgresThread
    private let state: ThreadState

    /// Creates a watch of the store at `place` for `claimant`; nothing is queried yet.
    ///
    /// `standby` returns how much of the store's state the claimant has loaded; it is called once a
    /// second, on another thread. `census` watches the relays of other stores too.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the process has no file descriptor
    ///   left.
    package init(
        _ place: PostgresPlace, as claimant: StoreClaimant, census: StoreCensus? = nil,
        standby: @escaping @Sendable () -> StoreNode.Standby? = { nil }
    ) throws(StorageError) {
        guard let thread = PostgresThread() else {
            throw .inaccessible(path: "\(place)", reason: "the process has no file descriptor left")
        }
        self.thread = thread
        state = ThreadState(
            PostgresSession(place: place, name: claimant.sessionName), claimant, census, standby)
        thread.start()
    }

    deinit { thread.end() }

    /// Opens the store; see ``RelayStore/open(_:as:settings:census:)``.
    package func open(_ settings: StoreSettings) async throws -> RelayStore {
        try await thread.run { [state] in
            try RelayStore.open(
                state.session.place, as: state.claimant, settings: settings, census: state.census)
        }
    }

    /// How the settings of other relays differ from the claimant's, a sentence for each, as of some
    /// seconds ago.
    package var disagreements: [String] { state.disagreements.withLock { $0 } }

    /// The number of announcements between two comparisons of settings.
    private static let announcementsBetweenLooks = 5

    /// Returns the owner of the store; `nil` if it may be claimed now.
    ///
    /// It also announces the claimant among the store's relays once a second.
    ///
    /// - Throws: ``StorageError`` if the server cannot be queried, or the store is part of a move.
    package func owner() async throws -> StoreOwner? {
        try await thread.run { [state] in try Self.look(state) }
    }

    /// Returns the running relays of all stores of the service; `nil` if there is only one store,
    /// or the look failed.
    package func view() async -> StoreView? {
        try? await thread.run { [state] () -> StoreView? in
            guard let census = state.census else { return nil }
            do {
                return try census.look(try state.connected())
            } catch {
                state.connection = nil
                return nil
            }
        }
    }

    /// Removes the claimant from the store's relays, so that it is not listed as silent after its
    /// end.
    ///
    /// It uses only an existing connection, and waits for two seconds at most.
    package func leave() async {
        try? await thread.run { [state] () throws -> Void in
            guard let connection = state.connection, state.announced != nil else { return }
            state.announced = nil
            try RelayNodes.leave(state.claimant, connection)
        }
    }

    private static func look(_ state: ThreadState) throws -> StoreOwner? {
        let place = state.session.place
        do {
            let connection = try state.connected()
            let now = state.session.watch()
            if state.announced.map({ now - $0 >= Ownership.renewal }) ?? true {
                try RelayNodes.announce(
                    state.claimant, standby: state.standby(), connection)
                try MoveMark.refuse(
                    place, owner: nil, connection, within: Ownership.renewal * 2)
                state.announced = now
                if state.announcements.isMultiple(of: Self.announcementsBetweenLooks) {
                    let found = try RelayNodes.disagreements(with: state.claimant, connection)
                    state.disagreements.withLock { $0 = found }
                }
                state.announcements += 1
            }
            return try Ownership.owner(connection)
        } catch let error as PostgresError {
            state.connection = nil
            throw error.opening(place)
        }
    }
}

extension PostgresPlace {
    /// Returns the address of this machine from which it reaches the server, such as `10.0.0.5`.
    ///
    /// Other machines that reach the same server find this one at it, unless addresses are
    /// translated between them. It blocks.
    ///
    /// - Throws: ``StorageError`` if the server cannot be used.
    package func ownAddress() throws(StorageError) -> String {
        try PostgresSession(place: self, name: "belfry").connect().ownAddress
    }
}
