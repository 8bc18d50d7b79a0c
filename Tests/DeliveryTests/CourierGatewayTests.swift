import Delivery
import Gateway
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// The gateway of devices that fetch their notifications, on a real store.
@Suite struct CourierGatewayTests {
    /// A store with a courier of alice, and a gateway whose answers are recorded.
    private struct Bench {
        let store: RelayStore
        let gateway: CourierPushGateway
        let answers: Answers

        init() async throws {
            store = try TemporaryStore().open()
            try await store.save(
                ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"]),
                at: Fixtures.moment)
            _ = try await store.createCourier(for: Self.device, at: Fixtures.moment)
            let answers = Answers()
            self.answers = answers
            gateway = CourierPushGateway(
                queue: store, bounds: CourierBounds(), now: { Fixtures.moment },
                sink: { answers.add($0) }, onQueued: { answers.ring($0) })
        }

        static var device: Device {
            var device = Fixtures.device("tab", token: 5)
            device.gateway = .courier
            device.topic = "courier"
            return device
        }

        func request(_ number: UInt64, device name: String = "tab") -> PushRequest {
            let owed = Fixtures.delivery(at: number, device: name).delivery
            var request = PushRequest(
                ticket: number, deliveryID: owed.id, container: owed.container,
                environment: owed.gatewayEnvironment, token: owed.token,
                notification: owed.notification)
            request.gateway = .courier
            request.recipient = PushRecipient(
                owner: owed.owner, deviceID: owed.deviceID, position: owed.ordinal.position)
            return request
        }
    }

    private final class Answers: Sendable {
        private let state = Mutex<([PushCompletion], Set<DeviceToken>)>(([], []))

        func add(_ completions: [PushCompletion]) {
            state.withLock { $0.0 += completions }
        }

        func ring(_ couriers: Set<DeviceToken>) {
            state.withLock { $0.1.formUnion(couriers) }
        }

        var completions: [PushCompletion] { state.withLock { $0.0 } }
        var rung: Set<DeviceToken> { state.withLock { $0.1 } }
    }

    @Test func `a push is accepted once it is queued, and the courier is notified`()
        async throws
    {
        let bench = try await Bench()
        bench.gateway.send([bench.request(1), bench.request(2)])
        await bench.gateway.shutDown(within: .seconds(1))
        #expect(
            bench.answers.completions == [
                PushCompletion(ticket: 1, outcome: .accepted),
                PushCompletion(ticket: 2, outcome: .accepted),
            ])
        #expect(bench.answers.rung == [Bench.device.token])
        let taken = try await bench.store.takeNotification(
            of: Bench.device.token, at: Fixtures.moment)
        #expect(taken?.payload == Array("{}".utf8))
    }

    @Test func `a repeated push is accepted and queued once`() async throws {
        let bench = try await Bench()
        bench.gateway.send([bench.request(1), bench.request(1)])
        await bench.gateway.shutDown(within: .seconds(1))
        #expect(bench.answers.completions.map(\.outcome) == [.accepted, .accepted])
        let first = try await bench.store.takeNotification(
            of: Bench.device.token, at: Fixtures.moment)
        let second = try await bench.store.takeNotification(
            of: Bench.device.token, at: Fixtures.moment)
        #expect(first != nil)
        #expect(second == nil)
    }

    @Test func `a push for a removed device is refused permanently`() async throws {
        let bench = try await Bench()
        bench.gateway.send([bench.request(1, device: "gone")])
        await bench.gateway.shutDown(within: .seconds(1))
        guard case .refused(let refusal)? = bench.answers.completions.first?.outcome else {
            Issue.record("\(bench.answers.completions)")
            return
        }
        #expect(refusal.reaction == .deadLetter)
        #expect(refusal.status == 410)
    }

    @Test func `a push after shutdown, or to a closed store, is reported as not sent`()
        async throws
    {
        let bench = try await Bench()
        await bench.store.close()
        bench.gateway.send([bench.request(1)])
        await bench.gateway.shutDown(within: .seconds(1))
        bench.gateway.send([bench.request(2)])
        #expect(bench.answers.completions.map(\.ticket) == [1, 2])
        for completion in bench.answers.completions {
            guard case .notSent = completion.outcome else {
                Issue.record("\(completion)")
                continue
            }
        }
    }

    @Test func `each push goes to the gateway of its device`() async throws {
        let bench = try await Bench()
        let pushed = ScriptedGateway(answeringTo: { _ in })
        let both = GatewaySwitch(apns: pushed, courier: bench.gateway)
        var other = bench.request(2)
        other.gateway = .apns
        both.send([bench.request(1), other, bench.request(3)])
        await both.shutDown(within: .seconds(1))
        #expect(pushed.requests.map(\.ticket) == [2])
        #expect(Set(bench.answers.completions.map(\.ticket)) == [1, 3])
    }
}
