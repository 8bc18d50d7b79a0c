import ChangeSources
import RelayModel
import Storage
import Testing

@testable import RelayServer

/// What the relay remembers of recent webhooks.
@Suite struct SourceLedgerTests {
    /// Secrets are compared by their bytes: another spelling of a letter is another secret.
    @Test func `a source's new secret applies at once however it is spelled`() throws {
        let memory = SourceMemory()
        let name: SourceName = try #require(SourceName(rawValue: "app"))
        let secrets = ["a long secret \u{E9}", "a long secret e\u{301}"]
        for secret in secrets {
            let definition: JSONValue = [
                "name": "app", "preset": "belfry",
                "verification": [
                    "scheme": "header", "header": "X-Secret",
                    "secrets": [["secret": .string(secret)]],
                ],
            ]
            let stored = StoredSource(
                container: TestRelay.container, name: name, definition: definition,
                savedAt: TestRelay.now)
            let source = try memory.source(stored, among: [stored])
            for shown in secrets {
                let request = WebhookRequest(
                    headers: ["X-Secret": shown], body: [], receivedAt: TestRelay.now)
                let isLetIn = (try? source.verify(request)) != nil
                #expect(isLetIn == shown.utf8.elementsEqual(secret.utf8))
            }
        }
    }

    @Test func `cached data of deleted sources is forgotten`() throws {
        let memory = SourceMemory()
        for number in 0..<5 {
            let name = "s\(number)"
            let stored = StoredSource(
                container: TestRelay.container,
                name: try #require(SourceName(rawValue: name)),
                definition: [
                    "name": .string(name), "preset": "belfry",
                    "verification": ["scheme": "none"],
                ], savedAt: TestRelay.now)
            _ = try memory.source(stored, among: [stored])
            _ = try memory.source(stored, among: [stored])
        }
        #expect(memory.count(of: TestRelay.container) == 1)
    }

    @Test func `the log and the memory of refusals are limited`() throws {
        let ledger = SourceLedger(PrometheusMetrics())
        let source: SourceName = try #require(SourceName(rawValue: "app"))
        func note(
            _ number: Int, at seconds: Int64, isKnown: Bool = true
        )
            -> SourceLedger.LogDecision
        {
            ledger.noteRefused(
                SourceLedger.Refusal(
                    at: Timestamp(seconds: seconds), source: source, address: nil, status: 401,
                    reason: "r", requestID: "\(number)"), of: TestRelay.container,
                isKnown: isKnown)
        }
        #expect(note(0, at: 100) == .log(unlogged: 0))
        for number in 1...150 { #expect(note(number, at: 105) == .silent) }
        #expect(note(151, at: 106, isKnown: false) == .log(unlogged: 0))
        #expect(note(152, at: 110) == .log(unlogged: 150))
        let kept = ledger.refusals(of: TestRelay.container).map(\.requestID)
        #expect(kept.count == 100)
        #expect(kept.prefix(3) == ["152", "151", "150"] && kept.last == "53")
        #expect(ledger.tallies(of: TestRelay.container)[source]?.refused == 152)
        // A clock that was set back silences nothing.
        #expect(note(153, at: 50) == .log(unlogged: 0))
        #expect(note(154, at: 59) == .silent)
    }

    @Test func `short-lived sources do not use up all series of the metrics`() throws {
        let metrics = PrometheusMetrics()
        let ledger = SourceLedger(metrics)
        let count = SourceLedger.mostMetered + 20
        for number in 0..<count {
            let source: SourceName = try #require(SourceName(rawValue: "s\(number)"))
            _ = ledger.noteRefused(
                SourceLedger.Refusal(
                    at: TestRelay.now, source: source, address: nil, status: 401, reason: "r",
                    requestID: "\(number)"), of: TestRelay.container, isKnown: true)
            ledger.forget(source, of: TestRelay.container)
        }
        let lines = metrics.render().split(separator: "\n").filter {
            $0.hasPrefix("belfry_webhooks_total{") && $0.contains("\"refused\"")
        }
        #expect(lines.count == SourceLedger.mostMetered + 1)
        let others = lines.filter { $0.contains("\"_other\"") }
        #expect(others.count == 1 && others.first?.hasSuffix(" 20") == true, "\(others)")
    }
}
