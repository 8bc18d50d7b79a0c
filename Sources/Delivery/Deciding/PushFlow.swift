import Gateway
package import RelayModel

/// Reports how many pushes of each container are with the gateway, of those that the log owes.
///
/// Each push that began ends once: with its answer, or when it is adopted as a retry. Retries and
/// ranges have limits of their own, and are not reported.
package struct PushFlow: Sendable {
    /// Receives the number of pushes of a container that are about to be handed to the gateway.
    package let began: @Sendable (_ container: ContainerKey, _ count: Int) -> Void
    /// Receives the pushes that ended.
    ///
    /// It is called on the gateway's thread.
    package let ended: @Sendable (_ ends: [PushEnd]) -> Void

    /// Creates a flow that calls these functions.
    package init(
        began: @escaping @Sendable (_ container: ContainerKey, _ count: Int) -> Void,
        ended: @escaping @Sendable (_ ends: [PushEnd]) -> Void
    ) {
        self.began = began
        self.ended = ended
    }

    /// Reports requests that are about to be sent.
    func began(_ requests: [PushRequest]) {
        // Requests of one change are adjacent.
        var rest = requests[...]
        while let first = rest.first {
            let others = rest.drop { $0.container == first.container }
            began(first.container, rest.count - others.count)
            rest = others
        }
    }
}

/// The end of one push.
package struct PushEnd: Sendable, Hashable {
    /// The container of the push.
    package let container: ContainerKey
    /// How long the push was with the gateway, or zero if that says nothing.
    package let latency: Duration

    /// Creates the end of a push.
    package init(container: ContainerKey, latency: Duration) {
        self.container = container
        self.latency = latency
    }
}
