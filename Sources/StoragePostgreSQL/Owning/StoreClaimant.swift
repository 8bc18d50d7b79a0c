import RelayModel

/// A process that wants to own a store, and how it is told from all others.
package struct StoreClaimant: Sendable, Hashable {
    /// What people call it.
    package let name: String
    /// Which Belfry it is, for people.
    let version: String
    /// Where other relays reach it once it owns the store; `nil` if they are not to.
    let endpoint: StoreEndpoint?
    /// What all relays should have alike, as it has it; `nil` if it is no relay.
    let settings: AgreedSettings?
    /// The machine on which it runs; `nil` if it is no relay.
    let machine: String?
    /// The schemas of the stores that it spreads over machines with others; empty if it moves
    /// nothing.
    let stores: [String]
    /// What the server calls its sessions, and no others.
    let sessionName: String

    /// Names a process.
    ///
    /// - Parameters:
    ///   - name: What people call it.
    ///   - identity: What no other process has, also not on the same machine: 16 bytes of
    ///     chance.
    ///   - version: Which Belfry it is; nothing of a command.
    ///   - endpoint: Where other relays reach it, if they are to.
    ///   - settings: What all relays should have alike, as it has it.
    ///   - machine: The machine on which it runs.
    ///   - stores: The schemas of the stores that it spreads over machines with others.
    ///   - isMove: Whether it is a move, and no relay.
    package init(
        name: String, identity: [UInt8], version: String = "", endpoint: StoreEndpoint? = nil,
        settings: AgreedSettings? = nil, machine: String? = nil, stores: [String] = [],
        isMove: Bool = false
    ) {
        self.name = name
        self.version = version
        self.endpoint = endpoint
        self.settings = settings
        self.machine = machine
        self.stores = stores
        sessionName = (isMove ? Self.movePrefix : "belfry ") + Hexadecimal.encode(identity)
    }

    /// Whether it stands by for the store; a command, which says no version, does not.
    var isRelay: Bool { !version.isEmpty }

    /// How the names of a move's sessions begin.
    static let movePrefix = "belfry move "
}
