import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// How redriving treats dead letters that could only end again.
@Suite struct RedrivingTests {
    private static func letter(_ position: UInt64, expiresIn seconds: Int64?) -> DeadLetter {
        DeadLetter(
            delivery: Fixtures.delivery(
                at: position,
                expiration: seconds.map { Fixtures.moment.advanced(by: .seconds($0)) }),
            attempts: 3, status: 400, reason: "BadTopic", at: Fixtures.moment)
    }

    @Test func `expired dead letters stay dead letters and are counted separately`() async throws {
        let store = try TemporaryStore().open()
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: ["com.example.art"]),
            at: Fixtures.moment)
        let letters = [
            Self.letter(1, expiresIn: nil), Self.letter(2, expiresIn: 100),
            Self.letter(3, expiresIn: 50), Self.letter(4, expiresIn: 0),
        ]
        var step = SettledStep(from: .start, to: .start)
        step.deadLetters = letters
        try await store.settle(step)
        let now = Fixtures.moment.advanced(by: .seconds(50))
        let chosen = try await store.redriveDeadLetters(
            [letters[3].delivery.delivery.id], of: Fixtures.container, reason: nil, at: now)
        #expect(chosen == Redriving(expired: 1))
        let all = try await store.redriveDeadLetters(
            nil, of: Fixtures.container, reason: "BadTopic", at: now)
        #expect(all == Redriving(redriven: 2, expired: 2))
        for (letter, isRetry) in zip(letters, [true, true, false, false]) {
            let exception = try await store.exception(letter.delivery.delivery.id)
            switch exception {
            case .retry(let retry): #expect(isRetry && retry.delivery == letter.delivery)
            case .deadLetter(let found): #expect(!isRetry && found == letter)
            case nil: Issue.record("\(letter.delivery.delivery.id) has no row")
            }
        }
        let ids = (1...9).map { Fixtures.delivery(at: $0).delivery.id }
        #expect(try await store.waiting(among: ids) == Set(ids[0..<2]))
        #expect(try await store.exception(Fixtures.delivery(at: 9).delivery.id) == nil)
        await store.close()
    }
}
