/// Where other relays reach the one that owns a store, and by what they are let in.
///
/// It lies with the lease: whoever may read that may ask the owner.
package struct StoreEndpoint: Sendable, Hashable, CustomStringConvertible {
    /// A host and a port, as `10.0.0.5:8092`.
    package let address: String
    /// What lets them in, as a text; a secret.
    package let pass: String

    package init(address: String, pass: String) {
        self.address = address
        self.pass = pass
    }

    /// The address alone.
    package var description: String { address }
}

/// Who owns a store at a moment.
package struct StoreOwner: Sendable, Hashable {
    /// What it is called.
    package let name: String
    /// The number under which it owns the store: each owner has a higher one than the one before.
    package let epoch: Int64
    /// Where it is reached; `nil` if it says nothing of that.
    package let endpoint: StoreEndpoint?

    package init(name: String, epoch: Int64, endpoint: StoreEndpoint?) {
        self.name = name
        self.epoch = epoch
        self.endpoint = endpoint
    }
}
