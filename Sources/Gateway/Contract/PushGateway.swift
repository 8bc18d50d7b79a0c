package import RelayModel

/// One attempt of one delivery.
package struct PushRequest: Sendable, Hashable {
    /// The caller's number for this attempt, echoed by its completion.
    package var ticket: UInt64
    /// The ID of the delivery, which is the same for each attempt (APNs: the `apns-id`).
    package var deliveryID: DeliveryID
    /// The container whose credential is used.
    ///
    /// Containers that share a connection share it fairly.
    package var container: ContainerKey
    /// The gateway environment that issued ``token``.
    package var environment: GatewayEnvironment
    /// The gateway's address of the device.
    package var token: DeviceToken
    /// The push notification.
    package var notification: PushNotification
    /// The kind of gateway that sends it.
    package var gateway: GatewayKind = .apns
    /// The user and the device, for gateways that find the device by its ID.
    package var recipient: PushRecipient?
    /// The registration of the device, which may end while the request waits.
    package var registration: JudgedRegistration?

    package init(
        ticket: UInt64, deliveryID: DeliveryID, container: ContainerKey,
        environment: GatewayEnvironment, token: DeviceToken, notification: PushNotification
    ) {
        self.ticket = ticket
        self.deliveryID = deliveryID
        self.container = container
        self.environment = environment
        self.token = token
        self.notification = notification
    }
}

/// The registration of a device, as it was judged when a push to it was handed over.
package struct JudgedRegistration: Sendable, Hashable {
    /// The serial of the device in the registry.
    package var serial: UInt64
    /// The number of registrations that had ended by then.
    package var ends: UInt64

    /// Creates a registration.
    ///
    /// Without `ends`, it is not checked again.
    package init(serial: UInt64, ends: UInt64 = .max) {
        self.serial = serial
        self.ends = ends
    }
}

/// The user and the device that a push is for, and the change that owes it.
package struct PushRecipient: Sendable, Hashable {
    /// The user.
    package var owner: UserID
    /// The device.
    package var deviceID: DeviceID
    /// The position of the change.
    package var position: LogPosition

    package init(owner: UserID, deviceID: DeviceID, position: LogPosition) {
        self.owner = owner
        self.deviceID = deviceID
        self.position = position
    }
}

/// How one attempt ended.
///
/// "No" and "we do not know" are different answers: mixing them loses notifications.
package enum PushOutcome: Sendable, Hashable {
    /// The gateway accepted the notification.
    ///
    /// Whether the device shows it is unknown.
    case accepted
    /// The gateway refused it, or could not be asked because there is no usable credential.
    case refused(GatewayRefusal)
    /// The request may have been processed, and the answer is lost.
    ///
    /// Send it again with the same delivery ID.
    case unknown(cause: PushCause)
    /// The request was certainly not processed: it was never written, or there is no connection.
    case notSent(cause: PushCause)
}

/// Why an attempt ended without an answer.
///
/// The reason is separate from the details. There are few reasons, so that dead letters can be
/// found by them.
package struct PushCause: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// What happened.
    ///
    /// The text is the same for the same kind of fault.
    package var reason: String
    /// The details that differ from one time to the next (addresses, times, libcurl's own text), or
    /// empty.
    package var detail: String

    package init(_ reason: String, detail: String = "") {
        self.reason = reason
        self.detail = detail
    }

    package init(stringLiteral reason: String) {
        self.init(reason)
    }

    /// The device's registration ended while the request waited for a connection.
    ///
    /// Whether it is sent at all must be decided again. The gateway is not at fault.
    package static let registrationEnded = PushCause("the device's registration has ended")

    /// The reason and the detail, for a human reader.
    package var description: String { detail.isEmpty ? reason : "\(reason): \(detail)" }
}

/// The end of one attempt.
package struct PushCompletion: Sendable, Hashable {
    /// The caller's number from the request.
    package var ticket: UInt64
    /// How the attempt ended.
    package var outcome: PushOutcome
    /// The time from the hand-over to a connection until the end.
    ///
    /// Zero if the request never got to one.
    package var latency: Duration

    package init(ticket: UInt64, outcome: PushOutcome, latency: Duration = .zero) {
        self.ticket = ticket
        self.outcome = outcome
        self.latency = latency
    }
}

/// Takes the ends of attempts in batches: one end for each ticket, in any order.
///
/// It is called on the gateway's own thread and must return quickly. It must not call the gateway.
package typealias PushCompletionSink = @Sendable ([PushCompletion]) -> Void

/// A remote push provider.
package protocol PushGateway: Sendable {
    /// Hands over attempts, whose ends go to the sink that was given at creation.
    ///
    /// It never blocks and never suspends. Visible pushes go before background ones, and the
    /// containers that share a credential take turns.
    func send(_ requests: [PushRequest])

    /// Stops taking requests, lets the open ones finish within `bound`, and reports the rest as
    /// unknown or not sent.
    ///
    /// It stops waiting once nothing has been answered for `silence`, because another task may be
    /// waiting for the end. When it returns, every ticket has been completed.
    func shutDown(within bound: Duration, silence: Duration) async
}

extension PushGateway {
    /// Shuts the gateway down, and waits for answers for as long as `bound`.
    package func shutDown(within bound: Duration) async {
        await shutDown(within: bound, silence: bound)
    }
}
