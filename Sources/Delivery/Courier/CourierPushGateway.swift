package import Gateway
package import RelayModel
package import Storage
import Synchronization

/// The gateway of devices that fetch.
///
/// A push is accepted once it is durably in the courier's queue.
///
/// Concurrency: a lock around a mailbox. ``run()`` writes its requests to the store, many at a
/// time, and completes them. Requests that no ``run()`` handles any more wait for
/// ``shutDown(within:)``, so that each ticket gets an answer.
package final class CourierPushGateway: PushGateway {
    private struct Mailbox {
        var requests: [PushRequest] = []
        var isClosed = false
    }

    /// The maximum number of requests in one write.
    private static let requestsPerWrite = 256

    private let mailbox = Mutex(Mailbox())
    private let posted = WakeSignal()
    private let queue: any CourierQueue
    private let bounds: CourierBounds
    private let now: @Sendable () -> Timestamp
    private let sink: PushCompletionSink
    private let onQueued: @Sendable (Set<DeviceToken>) -> Void
    private let onDropped: @Sendable (Int) -> Void

    /// Creates a gateway that answers to `sink`.
    ///
    /// - Parameters:
    ///   - queue: The queue in which notifications wait.
    ///   - bounds: The limits of the queue, in number and time.
    ///   - now: Returns the time of day.
    ///   - sink: Receives the ends of attempts.
    ///   - onQueued: Receives the couriers for which something waits now.
    ///   - onDropped: Receives the number of notifications that were dropped to make room.
    package init(
        queue: any CourierQueue, bounds: CourierBounds, now: @escaping @Sendable () -> Timestamp,
        sink: @escaping PushCompletionSink,
        onQueued: @escaping @Sendable (Set<DeviceToken>) -> Void,
        onDropped: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.queue = queue
        self.bounds = bounds
        self.now = now
        self.sink = sink
        self.onQueued = onQueued
        self.onDropped = onDropped
    }

    /// Takes attempts.
    ///
    /// After ``shutDown(within:)`` they are completed as not sent.
    package func send(_ requests: [PushRequest]) {
        let isTaken = mailbox.withLock { mailbox in
            guard !mailbox.isClosed else { return false }
            mailbox.requests.append(contentsOf: requests)
            return true
        }
        if isTaken { posted.raise() } else { refuse(requests) }
    }

    /// Queues the attempts that were taken, until the task is cancelled.
    package func run() async {
        while !Task.isCancelled {
            await posted.wait()
            await carry()
        }
    }

    /// Queues the attempts that were taken, and refuses all that come later.
    package func shutDown(within bound: Duration, silence: Duration) async {
        mailbox.withLock { $0.isClosed = true }
        await carry()
    }

    private func carry() async {
        while let requests = take() {
            do {
                let result = try await queue.queue(
                    requests.map(CourierDelivery.init), bounds: bounds, at: now())
                if result.dropped > 0 { onDropped(result.dropped) }
                complete(requests, result.outcomes)
            } catch {
                // The store has no room or fails. Every delivery becomes a retry.
                sink(
                    requests.map {
                        PushCompletion(
                            ticket: $0.ticket,
                            outcome: .notSent(
                                cause: PushCause("the store cannot queue it", detail: "\(error)")))
                    })
            }
        }
    }

    private func take() -> [PushRequest]? {
        mailbox.withLock { mailbox in
            guard !mailbox.requests.isEmpty else { return nil }
            let portion = Array(mailbox.requests.prefix(Self.requestsPerWrite))
            mailbox.requests.removeFirst(portion.count)
            return portion
        }
    }

    private func complete(_ requests: [PushRequest], _ outcomes: [CourierQueueing.Outcome]) {
        var rung: Set<DeviceToken> = []
        var completions: [PushCompletion] = []
        completions.reserveCapacity(requests.count)
        for (request, outcome) in zip(requests, outcomes) {
            if case .queued(let courier) = outcome { rung.insert(courier) }
            completions.append(
                PushCompletion(ticket: request.ticket, outcome: PushOutcome(outcome)))
        }
        if !rung.isEmpty { onQueued(rung) }
        sink(completions)
    }

    private func refuse(_ requests: [PushRequest]) {
        guard !requests.isEmpty else { return }
        sink(
            requests.map {
                PushCompletion(ticket: $0.ticket, outcome: .notSent(cause: "shutting down"))
            })
    }
}

extension PushOutcome {
    init(_ outcome: CourierQueueing.Outcome) {
        switch outcome {
        case .queued, .known:
            self = .accepted
        case .unregistered:
            // The device signed out, or belongs to another user now, who must not get the push.
            // Nothing is wrong with its token.
            self = .refused(
                GatewayRefusal(
                    status: 410, reason: "Unregistered", reaction: .deadLetter,
                    explanation: "the user no longer has this courier"))
        }
    }
}

extension CourierDelivery {
    init(_ request: PushRequest) {
        guard let recipient = request.recipient else {
            preconditionFailure("a push of a courier must name its recipient")
        }
        self.init(
            deliveryID: request.deliveryID, position: recipient.position,
            container: request.container, owner: recipient.owner, deviceID: recipient.deviceID,
            collapseID: request.notification.collapseID,
            expiration: request.notification.expiration, payload: request.notification.payload)
    }
}
