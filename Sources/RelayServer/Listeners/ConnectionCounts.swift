/// How many connections a listener serves, from whom, and who may still come in.
///
/// A pure value. Beyond the limit a few newcomers are let in only to be told to come again; beyond
/// these nobody is taken, and whoever comes waits in the system's own line.
struct ConnectionCounts: Sendable {
    /// How many may be inside.
    struct Bounds: Sendable, Hashable {
        /// Connections that are served.
        var connections: Int
        /// Those of one address among them.
        var perAddress: Int
        /// Connections that are refused with an answer at a time.
        var refusals: Int
        /// Connections that are held at a time before they are looked at.
        var held: Int
        /// Whether one that waits for a request gives way to a newcomer who would be refused.
        var makesRoom = false

        /// A sixteenth of the limit, so that the answers to a crowd cost little.
        init(connections: Int, perAddress: Int) {
            self.connections = connections
            self.perAddress = perAddress
            refusals = max(4, min(64, connections / 16))
            held = max(4, min(512, connections / 2))
        }
    }

    /// Why a newcomer is not served.
    enum Refusal: String, Sendable, Hashable, CaseIterable {
        /// The listener is full.
        case full
        /// The address has all that one may have.
        case address
        /// Too many wait to be looked at, mostly of an address whose connections ask nothing.
        case silent
    }

    /// What becomes of a newcomer.
    enum Verdict: Sendable, Hashable {
        /// It is served.
        case served
        /// It is told to come again.
        case refused(Refusal)
        /// It is closed without a word.
        case dropped(Refusal)

        /// Why it is not served.
        var refusal: Refusal? {
            switch self {
            case .served: nil
            case .refused(let refusal), .dropped(let refusal): refusal
            }
        }
    }

    let bounds: Bounds
    /// Connections that are served.
    private(set) var served = 0
    /// Connections that are being refused.
    private(set) var refused = 0
    private var byAddress: [ClientAddress: Int] = [:]
    /// Newcomers who wait to be looked at.
    private(set) var held = 0
    private var silent = RateTable<ClientAddress>(capacity: 4096)

    /// How many connections of one address may end without having asked anything before its
    /// newcomers wait.
    ///
    /// It is more than browsers open before they need them, and whoever looks whether a port is
    /// open. To serve a connection costs ten times what it costs to open one, or to close it
    /// unserved.
    static let silence = RateLimit(perSecond: 128, burst: 256)
    init(_ bounds: Bounds) {
        self.bounds = bounds
    }

    /// How many may be taken from the system's line together, so that each is served or told to
    /// come again, as far as one address has not too many.
    var room: Int { bounds.connections - served - held + bounds.refusals - refused }

    /// Whether anybody should be taken from the system's line.
    var takes: Bool { room > 0 }

    /// Whether a newcomer is to wait before it is looked at: those of its address ask nothing, or
    /// it would be dropped now.
    func waits(from address: ClientAddress?, at now: Duration) -> Bool {
        if let address, !silent.has(1, for: address, Self.silence, at: now) { return true }
        return refused >= bounds.refusals && refusal(of: address) != nil
    }

    /// Why a newcomer would not be served; `nil` if it would.
    func refusal(of address: ClientAddress?) -> Refusal? {
        if served >= bounds.connections { return .full }
        let count = address.map { byAddress[$0, default: 0] } ?? 0
        return count >= bounds.perAddress ? .address : nil
    }

    /// Notes that one waits, in the place of one that is dropped where they are many.
    ///
    /// - Returns: Whether the one that has waited longest is to be dropped.
    mutating func hold() -> Bool {
        guard held < bounds.held else { return true }
        held += 1
        return false
    }

    /// Notes that one who waited is looked at.
    mutating func release() { held -= 1 }

    /// Notes a newcomer; `address` is `nil` for one that is not counted by its address.
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

    /// Notes that one has gone who was taken with `verdict`, and whether it `asked` anything.
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
