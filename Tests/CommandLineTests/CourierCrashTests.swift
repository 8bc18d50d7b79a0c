import Foundation
import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// Notifications that wait for a web courier survive kill -9.
@Suite(.serialized, .timeLimit(.minutes(30))) struct CourierCrashTests {
    /// Polls the courier once and returns the record's name, or `nil` if there was no notification.
    private static func poll(_ client: RelayClient, _ path: String) async throws -> String? {
        let reply = try await client.call("GET", path).expect(200)
        guard case .string(let name)? = reply["ck", "qry", "rid"] else { return nil }
        return name
    }

    @Test func `notifications waiting when the relay dies are fetched once after the next start`()
        async throws
    {
        let folder = try Folder.make()
        let path = folder.appending(path: "relay.sqlite").path
        let gateway = try await SampleGateway.start(AnswerScript(), in: folder)
        let settings = ["--courier-hold-seconds": "1"]
        var relay = try await ServedBelfry.start(on: path, for: gateway, settings)
        var container = try await SampleContainer.create(on: relay.client, for: gateway)
        let made = try await container.call(
            "tokens/create", ["apnsEnvironment": "development"], as: "alice", in: nil
        ).expect(200)
        let url = try #require(made["webcourierURL"]?.text.filter { $0 != "\"" })
        let courier = String(url.dropFirst(relay.client.url.count))
        try await container.save(.query("q"))
        var names: [String] = []
        var fetched: [String] = []
        for round in 0..<3 {
            let fresh = (0..<10).map { "a\(round)-\($0)" }
            for name in fresh { try await container.post(.change("create", name)) }
            names += fresh
            // Some notifications are fetched at once. The relay is killed while others may still be
            // on their way to the courier's queue.
            for _ in 0..<3 {
                if let name = try await Self.poll(relay.client, courier) { fetched.append(name) }
            }
            await relay.kill()
            relay = try await ServedBelfry.start(on: path, for: gateway, settings)
            container.client = relay.client
        }
        while let name = try await Self.poll(relay.client, courier) { fetched.append(name) }
        #expect(fetched.sorted() == names.sorted())
        let code = await relay.end()
        #expect(code == 0, "\(relay.logged)")
        await gateway.simulated.stop()
    }
}
