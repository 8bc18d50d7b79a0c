/// The number of connections of a listener, by address, and the rule of who may connect.
///
/// It is a pure value. Beyond the limit, a few new connections are accepted only to be told to
/// retry. Beyond these, no connection is accepted, and clients wait in the system's accept queue.
struct ConnectionCounts: Sendable {
    /// The limits of a listener.
    struct Bounds: Sendable, Hashable {
        /// The number of served connections.
        var connections: Int
        /// The number of served connections of one address.
        var perAddress: Int
        /// The number of connections that are being refused with an answer.
        var refusals: Int
        /// The number of connections that are held back before they are judged.
        var held: Int
        /// Whether an idle connection is closed for a new one that would be refused otherwise.
        var makesRoom = false

        /// Creates limits; refusals are a sixteenth of the connections, so that a crowd costs
        /// little.
        init(connections: Int, perAddress: Int) {
            self.connections = connections
            self.perAddress = perAddress
            refusals = max(4, min(64, connections / 16))
            held = max(4, min(512, connections / 2))
        }
    }

    /// The reason why a new connection is not served.
    enum Refusal: String, Sendable, Hashable, CaseIterable {
        /// The listener is full.
        case full
        /// The address has its maximum number of connections.
        case address
        /// Too many are held back, mostly from an address whose connections send no request.
        case silent
    }

    /// The decision on a new connection.
    enum Verdict: Sendable, Hashable {
        /// It is served.
        case served
        /// It is told to retry.
        case refused(Refusal)
        /// It is closed without an answer.
        case dropped(Refusal)

        /// The reason why it is not served.
        var refusal: Refusal? {
            switch self {
            case .served: nil
            case .refused(let refusal), .dropped(let refusal): refusal
            }
        }
    }

    let bounds: Bounds
    /// The number of served connections.
    private(set) var served = 0
    /// The number of connections that are being refused.
    private(set) var refused = 0
    private var byAddress: [ClientAddress: Int] = [:]
    /// The number of new connections that are held back.
    private(set) var held = 0
    private var silent = RateTable<ClientAddress>(capacity: 4096)

    /// How many connections of one address may end without a request before its new connections are
    /// held back.
    ///
    /// It is more than browsers open in advance, and more than health checks that only probe the
    /// port. To serve a connection costs ten times as much as to accept it and close it unserved.
    static let silence = RateLimit(perSecond: 128, burst: 256)
    init(_ bounds: Bounds) {
        self.bounds = bounds
    }

    /// How many connections may be accepted together, so that each is served or told to retry.
    ///
    /// It does not consider the limit for one address.
    var room: Int { bounds.connections - served - held + bounds.refusals - refused }

    /// Whether another connection should be accepted.
    var takes: Bool { room > 0 }

    /// Returns whether a new connection is held back before it is judged.
    ///
    /// That is the case if connections of its address send no requests, or if it would be dropped
    /// now.
    func waits(from address: ClientAddress?, at now: Duration) -> Bool {
        if let address, !silent.has(1, for: address, Self.silence, at: now) { return true }
        return refused >= bounds.refusals && refusal(of: address) != nil
    }

    /// Returns why a new connection would not be served; `nil` if it would be.
    func refusal(of address: ClientAddress?) -> Refusal? {
        if served >= bounds.connections { return .full }
        let count = address.map { byAddress[$0, default: 0] } ?? 0
        return count >= bounds.perAddress ? .address : nil
    }

    /// Notes that a connection is held back; if there are too many, it replaces the oldest one.
    ///
    /// - Returns: Whether the connection that was held back longest must be dropped.
    mutating func hold() -> Bool {
        guard held < bounds.held else { return true }
        held += 1
        return false
    }

    /// Notes that a connection is no longer held back.
    mutating func release() { held -= 1 }

    /// Notes a new connection; `address` is `nil` if it is not counted by its address.
    mutating func arrive(from address: ClientAddress?) -> Verdict {
        if let refusal = refusal(of: address) {
            guard refused < bounds.refusals else { return .dropped(refusal) }
            refused += 1
            return .refused(refusal)
        }
        served += 1
        if let address { byAddress[address, default: 0] += 1 }
        return .served
    }

    /// Notes that a connection with this `verdict` has closed, and whether it sent a request.
    mutating func leave(
        _ verdict: Verdict, from address: ClientAddress?, asked: Bool, at now: Duration
    ) {
        switch verdict {
        case .served:
            served -= 1
            guard let address, let count = byAddress[address] else { return }
            byAddress[address] = count > 1 ? count - 1 : nil
            if !asked { silent.charge(1, to: address, Self.silence, at: now) }
        case .refused: refused -= 1
        case .dropped: break
        }
    }
}
