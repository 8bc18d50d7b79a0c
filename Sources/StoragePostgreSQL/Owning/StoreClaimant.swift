import RelayModel

/// A process that wants to own a store, with what distinguishes it from all others.
package struct StoreClaimant: Sendable, Hashable {
    /// The name that is shown.
    package let name: String
    /// The version of Belfry, which is shown.
    let version: String
    /// The address at which other relays reach it once it owns the store; `nil` if they must not.
    let endpoint: StoreEndpoint?
    /// The settings that all relays should have alike; `nil` if it is not a relay.
    let settings: AgreedSettings?
    /// The machine on which it runs; `nil` if it is not a relay.
    let machine: String?
    /// The schemas of the stores that it spreads over machines with other relays; empty if it takes
    /// no part in that.
    let stores: [String]
    /// The application name of its sessions on the server, which no other process has.
    let sessionName: String

    /// Creates a claimant.
    ///
    /// - Parameters:
    ///   - name: The name that is shown.
    ///   - identity: 16 random bytes, which no other process has, even on the same machine.
    ///   - version: The version of Belfry; empty for a command.
    ///   - endpoint: Where other relays reach it, if they may.
    ///   - settings: The settings that all relays should have alike.
    ///   - machine: The machine on which it runs.
    ///   - stores: The schemas of the stores that it spreads over machines with other relays.
    ///   - isMove: Whether it is a move, and not a relay.
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

    /// Whether it is a relay, which may stand by for the store; a command has no version.
    var isRelay: Bool { !version.isEmpty }

    /// The prefix of a move's session name.
    static let movePrefix = "belfry move "
}
