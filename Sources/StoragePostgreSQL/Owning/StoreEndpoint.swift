/// The address at which other relays reach a store's owner, and the secret that admits them.
///
/// It is stored with the lease: a process that may read the lease may call the owner.
package struct StoreEndpoint: Sendable, Hashable, CustomStringConvertible {
    /// A host and a port, such as `10.0.0.5:8092`.
    package let address: String
    /// The secret that admits other relays, as text.
    package let pass: String

    package init(address: String, pass: String) {
        self.address = address
        self.pass = pass
    }

    /// The address alone, without the secret.
    package var description: String { address }
}

/// The owner of a store at a moment.
package struct StoreOwner: Sendable, Hashable {
    /// Its name.
    package let name: String
    /// The epoch under which it owns the store, which is higher than that of the owner before.
    package let epoch: Int64
    /// Where other relays reach it; `nil` if it does not say.
    package let endpoint: StoreEndpoint?

    package init(name: String, epoch: Int64, endpoint: StoreEndpoint?) {
        self.name = name
        self.epoch = epoch
        self.endpoint = endpoint
    }
}
