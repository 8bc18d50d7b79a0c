import RelayModel

/// A process that wants to own a store, and how it is told from all others.
package struct StoreClaimant: Sendable, Hashable {
    /// What people call it: the name of its machine.
    package let name: String
    /// What the server calls its sessions, and no others.
    let sessionName: String

    /// Names a process.
    ///
    /// - Parameters:
    ///   - name: The name of its machine.
    ///   - identity: What no other process has, also not on the same machine: 16 bytes of
    ///     chance.
    package init(name: String, identity: [UInt8]) {
        self.name = name
        sessionName = "belfry \(Hexadecimal.encode(identity))"
    }
}
