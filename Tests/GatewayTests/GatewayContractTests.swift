import Foundation
import Gateway
import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// APNs over libcurl meets the contract of every gateway.
@Suite(.timeLimit(.minutes(30))) struct GatewayContractTests {
    @Test(arguments: GatewayConformance.cases)
    func `the APNs gateway meets its contract`(contract: GatewayCase) async throws {
        try await contract.check(APNsFactory())
    }
}

private struct APNsFactory: GatewayFactory {
    func make(
        answering answers: [FarSideAnswer], sink: @escaping PushCompletionSink
    ) async throws -> any GatewayUnderTest {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "belfry-contract-\(UUID().uuidString)")
        var configuration = SimulatedGateway.Configuration()
        configuration.caFile = folder.appending(path: "ca.pem").path
        configuration.script = .all()
        configuration.script.rules = [
            ScriptRule(.all, answers.map { ScriptedAnswer(Self.answer($0), times: 1) })
        ]
        let simulator = try await SimulatedGateway.start(configuration)
        var settings = CurlGatewaySettings()
        // The time is long because other suites may use all processors.
        settings.connectTimeout = .patience
        settings.production = try #require(
            GatewayEndpoint("https://127.0.0.1:\(simulator.port)"))
        settings.caFile = configuration.caFile
        return APNsUnderTest(
            simulator: simulator, folder: folder,
            gateway: try CurlPushGateway(settings: settings, world: .sample(), sink: sink))
    }

    private static func answer(_ answer: FarSideAnswer) -> GatewayAnswer {
        func refusal(_ status: Int, _ reason: String, after: Int? = nil) -> GatewayAnswer {
            .refuse(.init(status: status, reason: reason, retryAfter: after))
        }
        return switch answer {
        case .accept: .accept
        case .refuse: refusal(400, "BadTopic")
        case .refuseDevice: refusal(410, "Unregistered")
        case .busy(let seconds): refusal(429, "TooManyRequests", after: seconds)
        case .fail: refusal(500, "InternalServerError")
        case .breakOff: .closeConnection(.reset)
        }
    }
}

private struct APNsUnderTest: GatewayUnderTest {
    let simulator: SimulatedGateway
    let folder: URL
    let gateway: any PushGateway

    var received: [DeliveryID] {
        simulator.pushes.compactMap { UUIDBytes($0.apnsID).map(DeliveryID.init) }
    }

    func request(ticket: UInt64) -> PushRequest {
        guard let request = try? PushRequest.sample(ticket: ticket) else {
            preconditionFailure("the sample request cannot be made")
        }
        return request
    }

    func stop() async {
        await simulator.stop()
        try? FileManager.default.removeItem(at: folder)
    }
}
