import RelayModel
import Storage
import Testing

/// The contract of ``Storage/Registry`` about containers, keys, sources, and exceptions.
package enum RegistryConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase("a container's settings read as they were saved", check: containers),
        ConformanceCase("access keys are kept, and revoked once", check: accessKeys),
        ConformanceCase(
            "all live administrative tokens and the newest ended ones are kept",
            check: adminTokens),
        ConformanceCase("change sources are kept by name", check: sources),
        ConformanceCase("parked changes are kept in order until deleted", check: parkedChanges),
        ConformanceCase("dead letters are redriven or dropped by choice", check: deadLetters),
        ConformanceCase("provider tokens survive a restart", check: providerTokens),
    ]

    static func containers(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeStore()
        #expect(try await store.containers() == [])
        #expect(try await store.container(Sample.container) == nil)
        var music = ContainerSettings(key: Sample.otherContainer, topics: [])
        var art = ContainerSettings(key: Sample.container, topics: ["a", "b"])
        try await store.save(music, at: Sample.moment(0))
        try await store.save(art, at: Sample.moment(0))
        art.credential = ProviderCredential(
            teamID: "TEAM012345", keyID: "KEY0123456", privateKeyPEM: "-----BEGIN")
        art.userTokens = UserTokenSettings(sharedSecret: "s", issuer: "i", userClaim: "uid")
        art.expirationSeconds = 0
        music.userTokens = UserTokenSettings(keySet: "{}", audience: "a")
        try await store.save(art, at: Sample.moment(1))
        try await store.save(music, at: Sample.moment(1))
        let reopened = try await factory.reopen(store)
        #expect(try await reopened.containers() == [art, music])
        #expect(try await reopened.container(Sample.container) == art)
    }

    static func accessKeys(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var keys = AccessKey.Kind.allCases.enumerated().map { index, kind in
            AccessKey(
                id: "key-\(index)", container: Sample.container, kind: kind, verifier: "v",
                label: "l", createdAt: Sample.moment(Int64(-index)))
        }
        for key in keys { try await store.save(key) }
        #expect(try await store.accessKeys(of: Sample.container) == keys)
        #expect(try await store.accessKeys(of: Sample.otherContainer) == [])
        func revoke(_ id: String, of container: ContainerKey) async throws -> Bool {
            try await store.revokeAccessKey(id, of: container, at: Sample.moment(7))
        }
        #expect(try await revoke("key-1", of: Sample.otherContainer) == false)
        #expect(try await revoke("key-1", of: Sample.container))
        #expect(try await revoke("key-1", of: Sample.container) == false)
        keys[1].revokedAt = Sample.moment(7)
        #expect(try await factory.reopen(store).accessKeys(of: Sample.container) == keys)
    }

    static func adminTokens(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        func token(_ number: Int) -> AdminToken {
            let digits = String(number)
            let zeros = String(repeating: "0", count: 64 - digits.utf8.count)
            return AdminToken(
                id: "t\(number)", verifier: zeros + digits, label: "l", mayChange: false,
                container: nil, createdAt: Sample.moment(0), endsAt: nil)
        }
        var later = token(1)
        later.endsAt = Sample.moment(1)
        let live = [token(0), later]
        var over = (2..<1005).map { number in
            var revoked = token(number)
            revoked.revokedAt = Sample.moment(Int64(number))
            return revoked
        }
        // This token expired before any other one was revoked.
        over[1002].revokedAt = nil
        over[1002].endsAt = Sample.moment(-1)
        // They are saved at the same time, so that several share a commit.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for each in live + over { group.addTask { try await store.save(each) } }
            try await group.waitForAll()
        }
        let kept = try await factory.reopen(store).adminTokens()
        #expect(Set(kept) == Set(live + over[2..<1002]))
    }

    static func sources(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var source = StoredSource(
            container: Sample.container, name: Sample.source, definition: ["preset": "debezium"],
            savedAt: Sample.moment(1))
        try await store.save(source)
        source.definition = ["preset": "supabase", "secret": "s"]
        source.savedAt = Sample.moment(2)
        try await store.save(source)
        var other = source
        other.name = Sample.identifier("another")
        try await store.save(other)
        let reopened = try await factory.reopen(store)
        #expect(try await reopened.sources(of: Sample.container) == [other, source])
        #expect(try await reopened.source(source.name, of: Sample.container) == source)
        #expect(try await reopened.source(source.name, of: Sample.otherContainer) == nil)
        #expect(try await reopened.deleteSource(source.name, of: Sample.container))
        #expect(try await reopened.deleteSource(source.name, of: Sample.container) == false)
        #expect(try await reopened.source(source.name, of: Sample.container) == nil)
    }

    static func parkedChanges(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var parked = (0..<3).map { index in
            ParkedChange(
                container: Sample.container, source: Sample.source, reason: "no table",
                path: "items[\(index)]", body: [0, 255, UInt8(index)],
                headers: ["content-type": "application/json", "x": "ü"],
                receivedAt: Sample.moment(Int64(index)))
        }
        // Several changes are parked at once; one that is already parked keeps its number.
        let numbers = try await store.park(parked + [parked[0]])
        #expect(numbers.count == 4 && numbers.last == numbers.first)
        for index in parked.indices { parked[index].number = numbers[index] }
        #expect(parked.map(\.number) == parked.map(\.number).sorted())
        #expect(try await store.park(parked[1]) == numbers[1])
        #expect(try await store.park([]) == [])
        let reopened = try await factory.reopen(store)
        func listed(after number: UInt64, limit: Int) async throws -> [ParkedChange] {
            try await reopened.parkedChanges(of: Sample.container, after: number, limit: limit)
        }
        #expect(try await listed(after: 0, limit: 9) == parked)
        #expect(try await listed(after: parked[0].number, limit: 1) == [parked[1]])
        let number = parked[1].number
        #expect(
            try await reopened.deleteParkedChange(number, of: Sample.otherContainer) == false)
        #expect(try await reopened.deleteParkedChange(number, of: Sample.container))
        #expect(try await reopened.deleteParkedChange(number, of: Sample.container) == false)
        #expect(try await listed(after: 0, limit: 9) == [parked[0], parked[2]])
    }

    static func deadLetters(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        var step = SettledStep(from: .start, to: .start)
        step.deadLetters = (1...4).map {
            ProgressConformance.letter($0, reason: $0 == 4 ? "Expired" : "BadTopic")
        }
        try await store.settle(step)
        let container = Sample.container
        func left(_ reason: String? = nil) async throws -> [DeadLetter] {
            try await store.deadLetters(of: container, reason: reason, limit: 9)
        }
        #expect(try await left() == step.deadLetters.reversed())
        #expect(try await left("Expired") == [step.deadLetters[3]])
        let redriven = try await store.redriveDeadLetters(
            [Sample.deliveryID(1), Sample.deliveryID(4), Sample.deliveryID(99)], of: container,
            reason: "BadTopic", at: Sample.moment(50))
        #expect(redriven == Redriving(redriven: 1))
        let retries = try await store.retries(of: container, limit: 9)
        #expect(
            retries == [
                Retry(
                    delivery: step.deadLetters[0].delivery, attempts: 0, dueAt: Sample.moment(50),
                    reason: .said("BadTopic"))
            ])
        #expect(
            try await store.dropDeadLetters(nil, of: Sample.otherContainer, reason: nil) == 0)
        #expect(try await store.dropDeadLetters(nil, of: container, reason: "Expired") == 1)
        #expect(try await left() == [step.deadLetters[2], step.deadLetters[1]])
        let rest = try await store.redriveDeadLetters(
            nil, of: container, reason: nil, at: Sample.moment(60))
        #expect(rest == Redriving(redriven: 2))
        #expect(try await left() == [])
    }

    static func providerTokens(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeStore()
        var token = StoredProviderToken(
            teamID: "T", keyID: "K", environment: .production, token: "old",
            issuedAt: Sample.moment(1))
        try await store.saveProviderToken(token)
        token.token = "new"
        token.issuedAt = Sample.moment(2)
        try await store.saveProviderToken(token)
        let later = try await factory.reopen(store)
        #expect(try await later.providerTokens() == [token])
        // Nothing is kept of a key that was replaced.
        let next = StoredProviderToken(
            teamID: "T", keyID: "L", environment: .production, token: "next",
            issuedAt: token.issuedAt.advanced(by: .seconds(90_000)))
        try await later.saveProviderToken(next)
        #expect(try await later.providerTokens() == [next])
    }
}
