import Platform
package import RelayModel

/// APNs, or anything that speaks its provider API, over libcurl.
///
/// One thread owns all connections. Requests go in through a mailbox and come out as batches of
/// completions; nothing of libcurl is visible from outside. Connections are opened when the first
/// request of a credential comes, are ramped, watched, and replaced for as long as the gateway
/// lives. A gateway that is released without ``shutDown(within:)`` closes at once, and what was
/// open is reported as unknown.
package final class CurlPushGateway: PushGateway {
    private let mailbox: GatewayMailbox
    private let sink: PushCompletionSink

    /// The libraries that are loaded.
    package static var version: TransportVersion { .loaded }

    /// Starts the gateway's thread.
    ///
    /// - Throws: ``GatewaySetupError`` if a setting is out of range, libcurl is too old or without
    ///   HTTP/2, or the process has no thread or descriptor left.
    package init(
        settings: CurlGatewaySettings, world: GatewayWorld, sink: @escaping PushCompletionSink
    ) throws(GatewaySetupError) {
        try settings.validate()
        try TransportVersion.loaded.validate()
        guard let wake = WakeEvent() else {
            throw .outOfResources("the process has no file descriptor left")
        }
        let mailbox = GatewayMailbox(wake: wake)
        let isStarted = tryToStartThread(named: "belfry-gateway") {
            let context = GatewayContext(world, settings: settings, poll: EventPoll(wake: wake))
            GatewayLoop(
                mailbox: mailbox, context: context, credentials: world.credentials, sink: sink
            ).run()
        }
        guard isStarted else { throw .outOfResources("the process can start no thread") }
        self.mailbox = mailbox
        self.sink = sink
    }

    deinit {
        mailbox.post(.atOnce)
    }

    /// Hands over attempts; after ``shutDown(within:)`` they are completed as not sent before this
    /// returns.
    package func send(_ requests: [PushRequest]) {
        guard !requests.isEmpty, !mailbox.post(requests) else { return }
        sink(
            requests.map {
                PushCompletion(
                    ticket: $0.ticket,
                    outcome: .notSent(cause: RetirementCause.shuttingDown.cause))
            })
    }

    /// Lets `container` ask for its credential again, also for what waits.
    ///
    /// Connections of a credential that no container uses any more finish what is open and are
    /// closed.
    package func credentialChanged(for container: ContainerKey) {
        mailbox.post(changed: container)
    }

    /// Stops taking requests, lets those that are open finish within `bound`, and reports the rest;
    /// gives up what is open once nothing has been answered for `silence`.
    package func shutDown(within bound: Duration, silence: Duration) async {
        mailbox.post(.within(bound, silence: silence))
        await mailbox.ended()
    }

    /// How much waits and is open, as of the last second.
    package var gauge: GatewayGauge { mailbox.gauge }
}
