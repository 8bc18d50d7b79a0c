import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import Synchronization
import Testing

@testable import Live

/// The cached frames of a result, for clients that are sent the same a little later.
@Suite struct ShownRecordsTests {
    /// A hub that keeps results without taking their frames.
    private final class Untaken: LiveHub {
        let results = Mutex<[LiveResult]>([])

        func room() async {}

        func post(_ commands: [LiveCommand]) {
            for case .show(_, let result) in commands { results.withLock { $0.append(result) } }
        }
    }

    @Test("unsent frames weigh more once their records have been replaced")
    func weighsMore() async throws {
        let scenario = try await LiveScenario()
        let text = FieldValue.string(String(repeating: "x", count: 10_000))
        try await scenario.modify([LiveScenario.edit(.create, "r", ["text": text])])
        let untaken = Untaken()
        let declared = DeclaredQuery(
            id: "all", LiveScenario.query(.result), grant: .world, fingerprint: "all")
        try await scenario.withEngine { engine in
            await engine.connect(
                1, at: untaken, of: Fixtures.container, as: .user(Fixtures.identifier("alice")))
            let set = LiveSet(
                version: 1, [declared], removing: nil,
                under: await engine.schema(of: Fixtures.container))
            try await engine.declare(set, by: 1)
            let isShown = await Turns.yield { untaken.results.withLock { !$0.isEmpty } }
            #expect(isShown)
            let before = untaken.results.withLock { $0.first?.weight ?? 0 }
            #expect((1..<5000).contains(before))
            try await scenario.modify([LiveScenario.edit(.forceReplace, "r")])
            try await engine.fence("f", of: 1)
            let after = untaken.results.withLock { $0.first?.weight ?? 0 }
            #expect(after > before + 10_000)
        }
    }

    private static func frame(kilobytes: Int) -> LiveFrame {
        LiveFrame(["text": .string(String(repeating: "x", count: kilobytes * 1024))])
    }

    @Test func `frames are cached while there is room, and free it with the result`() {
        let room = PartsRoom(megabytes: 1)
        var results = [ShownRecords([]), ShownRecords([])]
        for result in results { result.sharers.store(2, ordering: .relaxed) }
        var made = 0
        func take(_ number: Int, of result: ShownRecords) {
            let place = LiveResult.Place(number: number, index: number)
            _ = result.part(at: place, in: room) {
                made += 1
                return (Self.frame(kilobytes: 400), nil)
            }
        }
        for number in [0, 0, 1, 1] { take(number, of: results[0]) }
        #expect(made == 2)
        // There is no room for a third frame, so it is made again for each client.
        for _ in 0..<2 { take(0, of: results[1]) }
        #expect(made == 4)
        #expect((800 * 1024...1024 * 1024).contains(room.bytes))
        results.removeFirst()
        #expect(room.bytes == 0)
        for _ in 0..<2 { take(0, of: results[0]) }
        #expect(made == 5)
        results = []
        #expect(room.bytes == 0)
    }

    @Test func `a frame for one client alone is not cached`() {
        let room = PartsRoom(megabytes: 1)
        let result = ShownRecords([])
        result.sharers.store(1, ordering: .relaxed)
        var made = 0
        for _ in 0..<2 {
            _ = result.part(at: LiveResult.Place(), in: room) {
                made += 1
                return (Self.frame(kilobytes: 1), nil)
            }
        }
        #expect(made == 2 && room.bytes == 0)
    }
}
