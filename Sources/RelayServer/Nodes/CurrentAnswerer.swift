import NIOSSL
import StoragePostgreSQL
import Synchronization

/// The way to the owner of a store.
struct OwnerRoute: Sendable {
    /// The owner as it describes itself.
    ///
    /// The epoch does not identify an owner: after a failover to a server that lacks a takeover,
    /// the same epoch is used again.
    let owner: StoreOwner
    let address: NodeAddress
    /// The TLS context that shows the owner's pass.
    let security: NIOSSLContext

    /// The owner's name.
    var name: String { owner.name }

    init(_ owner: StoreOwner, at address: NodeAddress, security: NIOSSLContext) {
        self.owner = owner
        self.address = address
        self.security = security
    }

    /// Creates the way to an owner.
    ///
    /// - Throws: ``NodePass/Unusable`` if the owner's address or pass cannot be used.
    init(to owner: StoreOwner, _ endpoint: StoreEndpoint) throws {
        guard let address = NodeAddress(endpoint.address) else {
            throw NodePass.Unusable(description: "the owner's address cannot be read")
        }
        self.init(owner, at: address, security: try NodePass(text: endpoint.pass).asking())
    }
}

/// The relay that answers calls at a moment.
enum Answerer: Sendable {
    /// This relay.
    case here
    /// The relay that owns the store.
    case owner(OwnerRoute)
    /// No relay yet; the reason.
    case nobody(String)
    /// No relay any more, because this one is ending.
    case ended
}

/// Knows which relay answers calls, and notifies listeners of changes.
///
/// Concurrency: a lock protects the state; listeners are called after it is released.
final class CurrentAnswerer: Sendable {
    private struct State {
        var answerer = Answerer.nobody("the relay is starting")
        var last: UInt64 = 0
        var listeners: [UInt64: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())

    var answerer: Answerer { state.withLock { $0.answerer } }

    /// The owner to which calls are forwarded; `nil` if they are not forwarded.
    var owner: StoreOwner? {
        guard case .owner(let route) = answerer else { return nil }
        return route.owner
    }

    /// Sets who answers from now on.
    func post(_ answerer: Answerer) {
        let listeners = state.withLock { state in
            state.answerer = answerer
            return Array(state.listeners.values)
        }
        for listener in listeners { listener() }
    }

    /// Calls `body` at each change, until ``forget(_:)``.
    func listen(_ body: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.last += 1
            state.listeners[state.last] = body
            return state.last
        }
    }

    func forget(_ number: UInt64) {
        _ = state.withLock { $0.listeners.removeValue(forKey: number) }
    }

    // MARK: What the database says

    /// Notes the owner to which calls are forwarded from now on.
    func note(_ owner: StoreOwner) {
        if self.owner == owner { return }
        guard let endpoint = owner.endpoint else {
            return postNobody(
                "\(owner.name) owns the store, but advertises no address (nodes.advertise)")
        }
        do {
            post(.owner(try OwnerRoute(to: owner, endpoint)))
        } catch {
            postNobody("\(owner.name) owns the store: \(error)")
        }
    }

    /// Notes the state of another shard's store.
    func note(_ state: ShardSight.State) {
        if case .ended = answerer { return }
        if case .owned(let owner) = state { return note(owner) }
        postNobody(state.obstacle ?? "")
    }

    /// Notes why it is unknown which store a call belongs to; `nil` ends the doubt, and this relay
    /// looks again.
    func note(doubt reason: String?) {
        switch (answerer, reason) {
        case (.ended, _), (.here, nil): break
        case (_, nil): post(.here)
        case (_, let reason?): postNobody(reason)
        }
    }

    /// Listeners are not woken if nothing changed.
    private func postNobody(_ reason: String) {
        if case .nobody(let known) = answerer, known == reason { return }
        post(.nobody(reason))
    }
}
