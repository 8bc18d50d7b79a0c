import Foundation
import Gateway
import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// Frames that an orderly gateway does not send, or not in one packet.
///
/// With what libcurl makes of them, no answer may be lost and no push delayed.
@Suite(.timeLimit(.minutes(30))) struct GatewayFrameTests {
    private func run(
        answering: @escaping RawServer.Answering,
        _ body: (RawServer, CurlPushGateway, EndCollector, EventCollector) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "belfry-frames-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try LoopbackCertificates.write(to: folder)
        let server = try await RawServer.start(certificatesIn: folder, answering: answering)
        var settings = CurlGatewaySettings()
        settings.connectTimeout = .patience
        // A push that runs into this limit ends as unknown.
        settings.watchdog = .seconds(60)
        settings.requestTimeout = .patience
        settings.production = try #require(
            GatewayEndpoint("https://127.0.0.1:\(server.port)"))
        settings.caFile = "\(folder)/ca.pem"
        settings.connectionsPerCredential = 1
        let ends = EndCollector()
        let events = EventCollector()
        var world = GatewayWorld.sample()
        world.observer = { events.note($0) }
        let gateway = try CurlPushGateway(settings: settings, world: world) { ends.take($0) }
        try await body(server, gateway, ends, events)
        await gateway.shutDown(within: .zero)
        try await server.stop()
    }

    @Test func `a long answer does not delay others that arrive with it`() async throws {
        try await run { number, stream in
            switch number {
            case 2, 3: return RawServer.Answer()
            case 4:
                // The answers on streams 3, 5 and 7 leave together, and the first of them is long.
                let body = [UInt8](repeating: 0x78, count: 6000)
                return RawServer.Answer(frames: [
                    .status(502, 3, isLast: false),
                    RawFrame(kind: 0, flags: 1, stream: 3, payload: body),
                    .status(200, 5), .status(200, 7),
                ])
            default: return RawServer.Answer(frames: [.status(200, stream)])
            }
        } _: { _, gateway, ends, _ in
            gateway.send([try .sample(ticket: 1)])
            _ = await ends.wait(for: [1])
            gateway.send(try (2...4).map { try .sample(ticket: $0) })
            let outcomes = await ends.wait(for: [2, 3, 4])
            #expect(outcomes.values.count { $0 == .accepted } == 3)
            #expect(
                outcomes.values.count { if case .refused = $0 { true } else { false } } == 1)
        }
    }

    @Test func `an answer followed by a reset without an error counts`() async throws {
        try await run { _, stream in
            RawServer.Answer(frames: [.status(200, stream, isLast: false), .reset(0, stream)])
        } _: { server, gateway, ends, _ in
            for ticket in 1...3 as ClosedRange<UInt64> {
                gateway.send([try .sample(ticket: ticket)])
                let ended = await ends.wait(for: [ticket])
                #expect(ended[ticket] == .accepted)
            }
            #expect(server.connections.count == 1)
        }
    }

    /// Only what is accepted is known by then: libcurl forgets the answers.
    @Test(arguments: [UInt8(2), 8])
    func `an accepted push stays accepted if its stream is reset with the answer`(
        code: UInt8
    ) async throws {
        try await run { number, stream in
            let status = number == 5 ? 410 : 200
            let answer = RawFrame.status(status, stream, isLast: number == 1)
            return RawServer.Answer(
                frames: number == 1 ? [answer] : [answer, .reset(code, stream)])
        } _: { server, gateway, ends, _ in
            for ticket in 1...4 as ClosedRange<UInt64> {
                gateway.send([try .sample(ticket: ticket)])
                let ended = await ends.wait(for: [ticket])
                #expect(ended[ticket] == .accepted)
            }
            gateway.send([try .sample(ticket: 5)])
            let ended = await ends.wait(for: [5])
            guard case .unknown? = ended[5] else {
                Issue.record("\(ended)")
                return
            }
            #expect(server.connections.count == 1)
        }
    }

    @Test func `an accepted push stays accepted if the connection ends with the answer`()
        async throws
    {
        try await run { number, stream in
            number == 1
                ? RawServer.Answer(frames: [.status(200, stream)])
                : RawServer.Answer(frames: [.status(200, stream, isLast: false)], isLast: true)
        } _: { _, gateway, ends, _ in
            for ticket in 1...2 as ClosedRange<UInt64> {
                gateway.send([try .sample(ticket: ticket)])
                let ended = await ends.wait(for: [ticket])
                #expect(ended[ticket] == .accepted)
            }
        }
    }

    @Test func `a refusal that breaks off is tried again`() async throws {
        try await run { number, stream in
            number == 1
                ? RawServer.Answer(frames: [.status(200, stream)])
                : RawServer.Answer(frames: [.status(410, stream, isLast: false)], isLast: true)
        } _: { _, gateway, ends, _ in
            gateway.send([try .sample(ticket: 1)])
            _ = await ends.wait(for: [1])
            gateway.send([try .sample(ticket: 2)])
            let ended = await ends.wait(for: [2])
            guard case .unknown? = ended[2] else {
                Issue.record("\(ended)")
                return
            }
        }
    }

    @Test func `a stream that requires HTTP 1 ends, and the connection goes on`() async throws {
        try await run { number, stream in
            RawServer.Answer(frames: [number == 2 ? .reset(13, stream) : .status(200, stream)])
        } _: { server, gateway, ends, _ in
            for ticket in 1...3 as ClosedRange<UInt64> {
                gateway.send([try .sample(ticket: ticket)])
                let ended = await ends.wait(for: [ticket])
                let reset = PushOutcome.unknown(cause: "the gateway reset the stream")
                #expect(ended[ticket] == (ticket == 2 ? reset : .accepted))
            }
            #expect(server.connections.count == 1)
        }
    }

    @Test func `a connection with a protocol error gets no further requests`()
        async throws
    {
        try await run { number, stream in
            switch number {
            case 2: return RawServer.Answer()
            case 3:
                // No table has this header entry, so the decoder cannot go on.
                let payload: [UInt8] = [0xFF, 0xFF, 0x7F]
                return RawServer.Answer(frames: [
                    RawFrame(kind: 1, flags: 5, stream: stream, payload: payload)
                ])
            default: return RawServer.Answer(frames: [.status(200, stream)])
            }
        } _: { server, gateway, ends, events in
            gateway.send([try .sample(ticket: 1)])
            _ = await ends.wait(for: [1])
            gateway.send([try .sample(ticket: 2), try .sample(ticket: 3)])
            let ended = await ends.wait(for: [2, 3])
            #expect(ended.values.count { if case .unknown = $0 { true } else { false } } == 2)
            // The connection must not be retired for silence. libcurl 8 itself reports it as
            // broken.
            let cause = try #require(events.retirements.first)
            #expect(cause == .closing || cause == .broken)
            gateway.send([try .sample(ticket: 4)])
            #expect(await ends.wait(for: [4])[4] == .accepted)
            #expect(server.connections.count == 2)
        }
    }
}
