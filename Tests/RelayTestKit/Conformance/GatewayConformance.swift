package import Gateway
package import RelayModel
import Synchronization
import Testing

/// How the far side of a gateway answers a push, in terms that every push provider has.
package enum FarSideAnswer: Sendable, Hashable {
    /// Accepts the push.
    case accept
    /// Refuses the push permanently.
    case refuse
    /// Reports that the device's address is dead.
    case refuseDevice
    /// Asks the gateway to wait for so many seconds.
    case busy(seconds: Int)
    /// Reports a temporary failure.
    case fail
    /// Breaks the connection off without an answer.
    case breakOff
}

/// A gateway under test, with a far side whose answers are scripted.
package protocol GatewayUnderTest: Sendable {
    /// The gateway.
    var gateway: any PushGateway { get }
    /// The IDs of the deliveries that reached the far side, in order.
    var received: [DeliveryID] { get }
    /// Returns a request with a token and a payload that the far side takes.
    func request(ticket: UInt64) -> PushRequest
    /// Stops the far side, and frees everything that the gateway itself does not own.
    func stop() async
}

/// Makes gateways for ``GatewayConformance``.
package protocol GatewayFactory: Sendable {
    /// Makes a gateway that reports to `sink`.
    ///
    /// Its far side gives `answers` in this order, and accepts every later push.
    func make(
        answering answers: [FarSideAnswer], sink: @escaping PushCompletionSink
    ) async throws -> any GatewayUnderTest
}

/// The contract of ``Gateway/PushGateway``, for APNs and every future gateway.
package enum GatewayConformance {
    /// The cases that state it.
    package static let cases: [GatewayCase] = [
        GatewayCase("every ticket ends exactly once") { factory in
            try await run(factory, [], count: 200) { ends, subject in
                #expect(ends.values.allSatisfy { $0 == .accepted })
                #expect(subject.received.count == 200)
            }
        },
        GatewayCase("the delivery's ID reaches the far side") { factory in
            try await run(factory, [], count: 5) { _, subject in
                let sent = (1...5).map { subject.request(ticket: $0).deliveryID }
                #expect(Set(subject.received) == Set(sent))
            }
        },
        GatewayCase("a permanent refusal becomes a dead letter") { factory in
            try await run(factory, [.refuse]) { ends, _ in
                #expect(reaction(ends[1]) == .deadLetter)
            }
        },
        GatewayCase("the token of a dead device is forgotten") { factory in
            try await run(factory, [.refuseDevice]) { ends, _ in
                guard case .forgetDeviceToken? = reaction(ends[1]) else {
                    Issue.record("\(ends)")
                    return
                }
            }
        },
        GatewayCase("the far side's wish to wait is reported") { factory in
            try await run(factory, [.busy(seconds: 7)]) { ends, _ in
                guard case .retry(let after?, _)? = reaction(ends[1]) else {
                    Issue.record("\(ends)")
                    return
                }
                #expect(after == .seconds(7))
            }
        },
        GatewayCase("a temporary failure is tried again") { factory in
            try await run(factory, [.fail]) { ends, _ in
                guard case .retry? = reaction(ends[1]) else {
                    Issue.record("\(ends)")
                    return
                }
            }
        },
        GatewayCase("a push with a lost answer is unknown, and not sent again") { factory in
            try await run(factory, [.breakOff]) { ends, subject in
                guard case .unknown? = ends[1] else {
                    Issue.record("\(ends)")
                    return
                }
                #expect(subject.received.count == 1)
            }
        },
        GatewayCase("after shutdown every push is reported as not sent") { factory in
            try await run(factory, []) { _, subject in
                await subject.gateway.shutDown(within: .seconds(1))
                subject.gateway.send([subject.request(ticket: 9)])
            } afterwards: { ends in
                guard case .notSent? = ends[9] else {
                    Issue.record("\(ends)")
                    return
                }
            }
        },
    ]

    private static func reaction(_ outcome: PushOutcome?) -> GatewayReaction? {
        if case .refused(let refusal)? = outcome { refusal.reaction } else { nil }
    }

    /// Sends `count` requests, waits until all have ended, and runs the checks.
    private static func run(
        _ factory: any GatewayFactory, _ answers: [FarSideAnswer], count: UInt64 = 1,
        _ check: ([UInt64: PushOutcome], any GatewayUnderTest) async -> Void,
        afterwards: ([UInt64: PushOutcome]) -> Void = { _ in }
    ) async throws {
        let ends = GatewayEnds()
        let subject = try await factory.make(answering: answers) { ends.take($0) }
        subject.gateway.send((1...count).map { subject.request(ticket: $0) })
        await check(await ends.wait(for: Int(count)), subject)
        await subject.gateway.shutDown(within: .seconds(1))
        afterwards(ends.all)
        await subject.stop()
    }
}

/// One case of ``GatewayConformance``.
package struct GatewayCase: Sendable, CustomTestStringConvertible {
    /// The statement that the case shows.
    package let testDescription: String
    /// Shows that the statement holds.
    package let check: @Sendable (any GatewayFactory) async throws -> Void

    init(
        _ statement: String, check: @escaping @Sendable (any GatewayFactory) async throws -> Void
    ) {
        testDescription = statement
        self.check = check
    }
}

/// Collects the ends of attempts, and lets a test wait for a number of them.
private final class GatewayEnds: Sendable {
    private struct State {
        var ended: [UInt64: PushOutcome] = [:]
        var waiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?
    }

    private let state = Mutex(State())

    var all: [UInt64: PushOutcome] { state.withLock { $0.ended } }

    func take(_ completions: [PushCompletion]) {
        let ready = state.withLock { state -> CheckedContinuation<Void, Never>? in
            for completion in completions {
                let earlier = state.ended.updateValue(
                    completion.outcome, forKey: completion.ticket)
                #expect(earlier == nil, "ticket \(completion.ticket) ended twice")
            }
            guard let waiter = state.waiter, waiter.count <= state.ended.count else { return nil }
            state.waiter = nil
            return waiter.continuation
        }
        ready?.resume()
    }

    func wait(for count: Int) async -> [UInt64: PushOutcome] {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if count <= state.ended.count { return true }
                state.waiter = (count, continuation)
                return false
            }
            if isReady { continuation.resume() }
        }
        return all
    }
}
