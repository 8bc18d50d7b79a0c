import Platform
package import RelayModel

/// APNs, or anything that speaks its provider API, over libcurl.
///
/// One thread owns all connections. Requests go in through a mailbox and come out as batches of
/// completions. Nothing of libcurl is visible from outside. Connections are opened for the first
/// request of a credential. They are ramped, watched, and replaced for as long as the gateway
/// exists. A gateway that is released without ``shutDown(within:)`` closes at once, and reports
/// open requests as unknown.
package final class CurlPushGateway: PushGateway {
    private let mailbox: GatewayMailbox
    private let sink: PushCompletionSink

    /// The versions of the loaded libraries.
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

    /// Hands over attempts.
    ///
    /// After ``shutDown(within:)`` they are completed as not sent before this method returns.
    package func send(_ requests: [PushRequest]) {
        guard !requests.isEmpty, !mailbox.post(requests) else { return }
        sink(
            requests.map {
                PushCompletion(
                    ticket: $0.ticket,
                    outcome: .notSent(cause: RetirementCause.shuttingDown.cause))
            })
    }

    /// Looks up the credential of `container` again, also for requests that wait.
    ///
    /// Connections of a credential that no container uses any more finish their open requests and
    /// are closed.
    package func credentialChanged(for container: ContainerKey) {
        mailbox.post(changed: container)
    }

    /// Stops taking requests, lets the open ones finish within `bound`, and reports the rest.
    ///
    /// Gives up open requests once nothing has been answered for `silence`.
    package func shutDown(within bound: Duration, silence: Duration) async {
        mailbox.post(.within(bound, silence: silence))
        await mailbox.ended()
    }

    /// The numbers of waiting and open requests, at most about a second old.
    package var gauge: GatewayGauge { mailbox.gauge }
}
