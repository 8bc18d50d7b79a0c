package import RelayModel

/// One attempt of one delivery.
package struct PushRequest: Sendable, Hashable {
    /// The caller's number for this attempt, echoed by its completion.
    package var ticket: UInt64
    /// The identity of the delivery, the same for every attempt (APNs: the `apns-id`).
    package var deliveryID: DeliveryID
    /// Whose credential is used, and with whom the connection is shared fairly.
    package var container: ContainerKey
    /// Which of the gateway's environments issued ``token``.
    package var environment: GatewayEnvironment
    /// The gateway's address of the device.
    package var token: DeviceToken
    /// What the device gets.
    package var notification: PushNotification
    /// The kind of gateway that it goes by.
    package var gateway: GatewayKind = .apns
    /// Whose device it is, for gateways that find it by its name.
    package var recipient: PushRecipient?
    /// The registration that it goes to, which may end while the request waits.
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

/// A device's registration, as it was judged when a push to it was handed over.
package struct JudgedRegistration: Sendable, Hashable {
    /// The registry's number of the device.
    package var serial: UInt64
    /// How many registrations had ended by then.
    package var ends: UInt64

    /// One of which nobody asks again until it is said when it was judged.
    package init(serial: UInt64, ends: UInt64 = .max) {
        self.serial = serial
        self.ends = ends
    }
}

/// Whose device a push is for, and which change owes it.
package struct PushRecipient: Sendable, Hashable {
    /// The user.
    package var owner: UserID
    /// The device.
    package var deviceID: DeviceID
    /// The change.
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
    /// The gateway took the notification; whether the device shows it is not known to anybody.
    case accepted
    /// The gateway answered, and said no; or it could not be asked for want of a credential.
    case refused(GatewayRefusal)
    /// The request may have been processed and the answer is lost: send it again with the same
    /// delivery ID.
    case unknown(cause: PushCause)
    /// The request was certainly not processed: it was never written, or there is no connection.
    case notSent(cause: PushCause)
}

/// Why an attempt ended without an answer.
///
/// What is told apart and what is counted are two things: the reasons are few, so that dead letters
/// can be found by theirs.
package struct PushCause: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// What happened, the same text for the same kind of thing.
    package var reason: String
    /// What differs from one time to the next (addresses, times, libcurl's own words), or empty.
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
    /// Whether it is sent at all is to be judged anew; the gateway has nothing to do with it.
    package static let registrationEnded = PushCause("the device's registration has ended")

    /// Both parts, for people.
    package var description: String { detail.isEmpty ? reason : "\(reason): \(detail)" }
}

/// The end of one attempt.
package struct PushCompletion: Sendable, Hashable {
    /// The caller's number from the request.
    package var ticket: UInt64
    /// How it ended.
    package var outcome: PushOutcome
    /// The time from the hand-over to a connection until the end; zero if it never got there.
    package var latency: Duration

    package init(ticket: UInt64, outcome: PushOutcome, latency: Duration = .zero) {
        self.ticket = ticket
        self.outcome = outcome
        self.latency = latency
    }
}

/// Takes the ends of attempts, in batches, once for every ticket, in any order.
///
/// It is called on the gateway's own thread and must return quickly; it must not call the gateway.
package typealias PushCompletionSink = @Sendable ([PushCompletion]) -> Void

/// A remote push provider.
package protocol PushGateway: Sendable {
    /// Hands over attempts, which end in the sink that was given at creation.
    ///
    /// It never blocks and never suspends. Visible pushes go before background ones, and the
    /// containers that share a credential take turns.
    func send(_ requests: [PushRequest])

    /// Stops taking requests, lets those that are open finish within `bound`, and reports the rest
    /// as unknown or not sent.
    ///
    /// Once nothing has been answered for as long as `silence` it waits no longer: somebody else
    /// may wait for the end. Every ticket has been completed when it returns.
    func shutDown(within bound: Duration, silence: Duration) async
}

extension PushGateway {
    /// The same, and waits for answers for as long as `bound`.
    package func shutDown(within bound: Duration) async {
        await shutDown(within: bound, silence: bound)
    }
}
