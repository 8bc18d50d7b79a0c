import NIOSSL
import StoragePostgreSQL
import Synchronization

/// Where the owner of a store is reached.
struct OwnerRoute: Sendable {
    /// What it says of itself.
    ///
    /// The number under which it owns the store does not tell it from another: after a failover to
    /// a server that lacks a takeover it is given out anew.
    let owner: StoreOwner
    let address: NodeAddress
    /// What shows its pass.
    let security: NIOSSLContext

    /// What it is called.
    var name: String { owner.name }

    init(_ owner: StoreOwner, at address: NodeAddress, security: NIOSSLContext) {
        self.owner = owner
        self.address = address
        self.security = security
    }

    /// The way to an owner.
    ///
    /// - Throws: ``NodePass/Unusable`` if what it says of itself cannot be used.
    init(to owner: StoreOwner, _ endpoint: StoreEndpoint) throws {
        guard let address = NodeAddress(endpoint.address) else {
            throw NodePass.Unusable(description: "the owner's address cannot be read")
        }
        self.init(owner, at: address, security: try NodePass(text: endpoint.pass).asking())
    }
}

/// Who answers calls at a moment.
enum Answerer: Sendable {
    /// This relay.
    case here
    /// The relay that owns the store.
    case owner(OwnerRoute)
    /// Nobody yet, and why.
    case nobody(String)
    /// Nobody any more: this relay ends.
    case ended
}

/// Says who answers calls, and tells when that changes.
///
/// Concurrency: a lock around values; whoever listens is called after it.
final class CurrentAnswerer: Sendable {
    private struct State {
        var answerer = Answerer.nobody("the relay starts")
        var last: UInt64 = 0
        var listeners: [UInt64: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())

    var answerer: Answerer { state.withLock { $0.answerer } }

    /// The owner to whom calls are forwarded; `nil` if they are not.
    var owner: StoreOwner? {
        guard case .owner(let route) = answerer else { return nil }
        return route.owner
    }

    /// Says who answers from now on.
    func post(_ answerer: Answerer) {
        let listeners = state.withLock { state in
            state.answerer = answerer
            return Array(state.listeners.values)
        }
        for listener in listeners { listener() }
    }

    /// Has `body` called at each change, until ``forget(_:)``.
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

    /// Says to whom calls are handed from now on.
    func note(_ owner: StoreOwner) {
        if self.owner == owner { return }
        guard let endpoint = owner.endpoint else {
            return postNobody(
                "\(owner.name) owns the store, and does not say where it is reached")
        }
        do {
            post(.owner(try OwnerRoute(to: owner, endpoint)))
        } catch {
            postNobody("\(owner.name) owns the store: \(error)")
        }
    }

    /// Says how it is with the store of another shard.
    func note(_ state: ShardSight.State) {
        if case .ended = answerer { return }
        if case .owned(let owner) = state { return note(owner) }
        postNobody(state.obstacle ?? "")
    }

    /// Says why it is not known for whom a call is; `nil` if it is by now, and is asked again here.
    func note(doubt reason: String?) {
        switch (answerer, reason) {
        case (.ended, _), (.here, nil): break
        case (_, nil): post(.here)
        case (_, let reason?): postNobody(reason)
        }
    }

    /// Whoever waits is not woken for what it knows.
    private func postNobody(_ reason: String) {
        if case .nobody(let known) = answerer, known == reason { return }
        post(.nobody(reason))
    }
}
