import Gateway
package import RelayModel

/// Hears how many pushes of each container are with the gateway, of those that the log owes.
///
/// Each push that began ends once: with its answer, or when it is adopted as a retry. Retries and
/// ranges have bounds of their own, and are not told.
package struct PushFlow: Sendable {
    /// Is told how many pushes of a container are handed to the gateway.
    package let began: @Sendable (_ container: ContainerKey, _ count: Int) -> Void
    /// Pushes have ended; called on the gateway's thread.
    package let ended: @Sendable (_ ends: [PushEnd]) -> Void

    /// Tells these.
    package init(
        began: @escaping @Sendable (_ container: ContainerKey, _ count: Int) -> Void,
        ended: @escaping @Sendable (_ ends: [PushEnd]) -> Void
    ) {
        self.began = began
        self.ended = ended
    }

    /// Tells of requests that are about to be sent.
    func began(_ requests: [PushRequest]) {
        // Those of one change stand together.
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
    /// Whose it was.
    package let container: ContainerKey
    /// How long it was with the gateway; zero if that says nothing.
    package let latency: Duration

    /// The end of a push.
    package init(container: ContainerKey, latency: Duration) {
        self.container = container
        self.latency = latency
    }
}
