import Live
import Logging
import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import StorageSQL
import Synchronization
import Testing

/// What clients are told when they return.
@Suite struct LiveReturnTests {
    /// A client that also records why records came into its results and left them.
    private final class Listener: LiveHub {
        let client = ModelClient(1, as: .user(Fixtures.identifier("alice")))
        private let reasons = Mutex<[String]>([])

        /// Returns and clears the recorded texts, each of a record and a reason.
        func takeReasons(isSorted: Bool = true) -> [String] {
            reasons.withLock { reasons in
                defer { reasons = [] }
                return isSorted ? reasons.sorted() : reasons
            }
        }

        func room() async {}

        func post(_ commands: [LiveCommand]) {
            for command in commands {
                switch command {
                case .send(_, let frames): note(frames)
                case .deliver(let frames, _, _):
                    note(frames.compactMap { $0.frame(for: client.reader, on: nil) })
                default: break
                }
            }
            client.post(commands)
        }

        private func note(_ frames: [LiveFrame]) {
            for frame in frames where frame.type == "items" {
                let json = try? JSONValue(parsing: frame.bytes)
                guard case .array(let items)? = json?.value(at: ["items"]) else { continue }
                for item in items {
                    guard case .string(let reason)? = item.value(at: ["why"]),
                        case .string(let name)? = item.value(at: ["record", "recordName"])
                    else { continue }
                    reasons.withLock { $0.append("\(name) \(reason)") }
                }
            }
        }
    }

    private static func price(_ price: Int64) -> RecordFields { ["price": .integer(price)] }

    private static func come(
        _ listener: Listener, _ engine: LiveEngine, _ queries: [String: LiveQuery],
        version: Int64
    ) async throws {
        let client = listener.client
        await engine.connect(1, at: listener, of: Fixtures.container, as: client.reader)
        try await engine.declare(queries, version: version, by: client)
        await client.wait { $0.isComplete }
    }

    @Test(
        "a returning client gets the same reasons as one that stayed",
        arguments: [false, true])
    func tellsWhy(isOrdered: Bool) async throws {
        let scenario = try await LiveScenario()
        for name in ["gone", "moved", "low"] {
            try await scenario.modify([
                LiveScenario.edit(.create, name, Self.price(name == "low" ? 50 : 5))
            ])
        }
        let order = isOrdered ? [LiveSortKey("price")] : []
        let queries = ["cheap": LiveScenario.query(.result, where: "price < 10", order: order)]
        let listener = Listener()
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 1)
            await engine.disconnect(1)
        }
        listener.client.leave()
        _ = listener.takeReasons()
        try await scenario.modify([
            LiveScenario.edit(.forceDelete, "gone"), LiveScenario.edit(.create, "new"),
            LiveScenario.edit(.create, "brief", Self.price(1)),
            LiveScenario.edit(.forceReplace, "moved", Self.price(20)),
            LiveScenario.edit(.forceReplace, "low", Self.price(4)),
        ])
        try await scenario.modify([
            LiveScenario.edit(.forceReplace, "new", Self.price(3)),
            LiveScenario.edit(.forceDelete, "brief"),
        ])
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 2)
        }
        #expect(
            listener.takeReasons() == ["gone deleted", "low entered", "moved left", "new created"])
        let shown = listener.client.state.withLock { $0.shown["cheap"] ?? [:] }
        #expect(shown.keys.sorted() == ["low", "new"])
    }

    private static func naming(_ readers: [String], _ price: Int64 = 5) -> RecordChange {
        var change = RecordChange(
            .update, of: LiveScenario.type, RecordID(recordName: Fixtures.identifier("named")))
        change.after = RecordImage(Self.price(price))
        change.readers = readers
        return change
    }

    @Test(
        "a client is told when only the readers of a record change",
        arguments: [false, true])
    func tellsOfReaders(isAway: Bool) async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "first")])
        try await scenario.append(Self.naming(["bob"]))
        let queries = ["all": LiveScenario.query(.result)]
        let listener = Listener()
        var version: Int64 = 1
        for (readers, shown) in [
            (["bob", "cy"], ["first"]), (["alice", "bob"], ["first", "named"]),
            (["bob", "alice"], ["first", "named"]), (["bob"], ["first"]),
        ] {
            let told = version
            try await scenario.withEngine { engine in
                try await Self.come(listener, engine, queries, version: told)
                if isAway { await engine.disconnect(1) }
                try await scenario.append(Self.naming(readers))
                if !isAway { try await engine.fence("f", of: 1) }
            }
            listener.client.leave()
            try await scenario.withEngine { engine in
                try await Self.come(listener, engine, queries, version: told + 1)
            }
            listener.client.leave()
            version += 2
            let state = listener.client.state.withLock { $0 }
            #expect(state.shown["all"]?.keys.sorted() == shown && state.resets == [])
        }
        // The model client hears only what is told to it alone, and frames for some readers
        // besides.
        if isAway {
            #expect(listener.takeReasons() == ["named readable", "named unreadable"])
        }
    }

    /// Whether the record fitted on the side of the change that the user cannot read would reveal
    /// what it was there, one query for each value.
    @Test(
        "a user who reads a record on one side of a change is not told whether it fitted",
        arguments: [false, true])
    func tellsNothingOfTheOtherSide(isAway: Bool) async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "first")])
        try await scenario.append(Self.naming(["bob"], 20))
        let queries = ["cheap": LiveScenario.query(.result, where: "price < 10")]
        let listener = Listener()
        for (round, (reader, price)) in [("alice", Int64(5)), ("bob", 20)].enumerated() {
            let version = Int64(round) * 2 + 1
            try await scenario.withEngine { engine in
                try await Self.come(listener, engine, queries, version: version)
                if isAway { await engine.disconnect(1) }
                try await scenario.append(Self.naming([reader], price))
                if !isAway { try await engine.fence("f", of: 1) }
            }
            listener.client.leave()
            try await scenario.withEngine { engine in
                try await Self.come(listener, engine, queries, version: version + 1)
            }
            listener.client.leave()
            let shown = listener.client.state.withLock { $0.shown["cheap"] ?? [:] }
            #expect(shown.keys.sorted() == (reader == "alice" ? ["named"] : []))
        }
        #expect(listener.takeReasons() == ["named readable", "named unreadable"])
    }

    @Test("newly readable records are told in the order of the result")
    func tellsInOrder() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "first", Self.price(1))])
        try await scenario.append(Self.naming(["bob"]))
        let order = [LiveSortKey("price")]
        let queries = ["all": LiveScenario.query(.result, order: order)]
        let listener = Listener()
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 1)
            await engine.disconnect(1)
        }
        listener.client.leave()
        _ = listener.takeReasons()
        try await scenario.append(Self.naming(["world"]))
        try await scenario.modify([LiveScenario.edit(.create, "last", Self.price(9))])
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 2)
        }
        #expect(
            listener.takeReasons(isSorted: false) == ["named readable", "last created"])
    }

    /// A repeated snapshot does this to each row.
    @Test("a returning client is told of a record that was created once more")
    func tellsOfSecondCreation() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "first")])
        var change = RecordChange(
            .create, of: LiveScenario.type, RecordID(recordName: Fixtures.identifier("twice")))
        change.after = RecordImage(Self.price(5))
        change.origin.userID = Fixtures.identifier("cy")
        try await scenario.append(change)
        let condition = "modifiedUserRecordName == 'cy'"
        let queries = ["hers": LiveScenario.query(.result, where: condition)]
        let listener = Listener()
        let rounds: [(Int64, [String])] = [(1, ["twice"]), (2, [])]
        for (version, shown) in rounds {
            try await scenario.withEngine { engine in
                try await Self.come(listener, engine, queries, version: version)
                await engine.disconnect(1)
            }
            listener.client.leave()
            let state = listener.client.state.withLock { $0 }
            #expect(state.shown["hers"]?.keys.sorted() == shown && state.resets == [])
            change.origin.userID = nil
            change.isSnapshot = true
            try await scenario.append(change)
        }
    }

    @Test("a coalescing result says what was created and deleted")
    func tellsWhyTogether() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([
            LiveScenario.edit(.create, "gone", Self.price(5)),
            LiveScenario.edit(.create, "low", Self.price(50)),
        ])
        var query = LiveScenario.query(.result, where: "price < 10")
        query.coalesces = true
        let queries = ["cheap": query]
        let listener = Listener()
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 1)
            _ = listener.takeReasons()
            try await scenario.modify([
                LiveScenario.edit(.forceDelete, "gone"),
                LiveScenario.edit(.create, "new", Self.price(3)),
                LiveScenario.edit(.forceReplace, "low", Self.price(4)),
            ])
            try await engine.fence("f", of: 1)
        }
        #expect(listener.takeReasons() == ["gone deleted", "low entered", "new created"])
    }

    @Test("two equal queries of one client get each change once")
    func tellsOnce() async throws {
        let scenario = try await LiveScenario()
        let queries = [
            "one": LiveScenario.query(.changes), "two": LiveScenario.query(.changes),
            "all": LiveScenario.query(.result), "same": LiveScenario.query(.result),
        ]
        let listener = Listener()
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 1)
            await engine.disconnect(1)
        }
        listener.client.leave()
        _ = listener.takeReasons()
        try await scenario.modify(["a", "b"].map { LiveScenario.edit(.create, $0) })
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 2)
            try await scenario.modify([LiveScenario.edit(.create, "c")])
            try await engine.fence("f", of: 1)
        }
        let state = listener.client.state.withLock { $0 }
        #expect(state.changes["one"]?.count == 3 && state.changes["two"]?.count == 3)
        #expect(state.shown["all"]?.count == 3 && state.shown["same"]?.count == 3)
        #expect(listener.takeReasons() == ["a created", "b created", "c created"])
    }

    @Test("a returning client begins anew if its type was forgotten meanwhile")
    func beginsAnewWithType() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "old")])
        let queries = ["all": LiveScenario.query(.result), "new": LiveScenario.query(.changes)]
        let listener = Listener()
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 1)
            await engine.disconnect(1)
        }
        listener.client.leave()
        for isKept in [false, true] {
            let type = RecordTypeDefinition(LiveScenario.type, isKept: isKept, isInferred: true)
            try await scenario.store.replaceSchema(
                of: Fixtures.container, with: ContainerSchema([type]), at: Fixtures.moment)
        }
        try await scenario.modify([LiveScenario.edit(.create, "fresh")])
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 2)
        }
        let state = listener.client.state.withLock { $0 }
        #expect(state.resets == ["changed"])
        #expect(state.shown["all"]?.keys.sorted() == ["fresh"])
        #expect(state.changes["new"]?.count == 1)
    }

    @Test("a client's own window begins anew when it becomes one of all")
    func beginsAnewWithoutReaders() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([
            LiveScenario.edit(.create, "a", Self.price(6)),
            LiveScenario.edit(.create, "b", Self.price(8)),
        ])
        try await scenario.append(Self.naming(["bob"]))
        let queries = [
            "top": LiveScenario.query(.result, order: [LiveSortKey("price")], limit: .first(2))
        ]
        let listener = Listener()
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 1)
            await engine.disconnect(1)
        }
        listener.client.leave()
        #expect(listener.client.state.withLock { $0.shown["top"]?.keys.sorted() } == ["a", "b"])
        listener.client.state.withLock { $0.resets = [] }
        try await scenario.modify([
            LiveScenario.edit(.forceDelete, "named"),
            LiveScenario.edit(.create, "new", Self.price(7)),
        ])
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 2)
        }
        let state = listener.client.state.withLock { $0 }
        #expect(state.shown["top"]?.keys.sorted() == ["a", "new"])
        #expect(state.resets == ["readers"])
    }

    @Test("queries that begin anew are logged in one line")
    func saysThatTheyBeginAnew() async throws {
        let scenario = try await LiveScenario()
        try await scenario.modify([LiveScenario.edit(.create, "one", Self.price(1))])
        let queries = ["top": LiveScenario.query(.result, order: [LiveSortKey("price")])]
        let listener = Listener()
        let log = LogBook { event in
            let details = ["queries", "reason"].map { name in
                event.metadata?[name].map { "\($0)" } ?? "-"
            }
            return "\(event.message): \(details.joined(separator: " "))"
        }
        try await scenario.withEngine(logger: log.logger) { engine in
            try await Self.come(listener, engine, queries, version: 1)
            #expect(log.lines == [])
            try await scenario.append(Self.naming(["alice"]))
            try await engine.reachHead()
            #expect(log.lines == ["live queries start over: 1 readers"])
            await engine.disconnect(1)
        }
        listener.client.leave()
        let head = try await scenario.store.head()
        try await scenario.withEngine(logger: log.logger) { engine in
            let reader = listener.client.reader
            await engine.connect(1, at: listener, of: Fixtures.container, as: reader)
            // Several queries of one set begin anew.
            let ahead = ["top", "other"].map { name in
                DeclaredQuery(
                    id: name, LiveScenario.query(.result), grant: .world, fingerprint: "f",
                    since: head.next)
            }
            try await engine.declare(
                LiveSet(
                    version: 2, ahead, removing: nil,
                    under: engine.schema(of: Fixtures.container)),
                by: 1)
        }
        #expect(log.lines.last == "live queries start over: 2 foreign")
    }

    @Test("a returning once query gets one change, and ends")
    func endsWithOne() async throws {
        let scenario = try await LiveScenario()
        var query = LiveScenario.query(.changes)
        query.isOnce = true
        let queries = ["next": query]
        let listener = Listener()
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 1)
            await engine.disconnect(1)
        }
        listener.client.leave()
        try await scenario.modify(["a", "b"].map { LiveScenario.edit(.create, $0) })
        try await scenario.withEngine { engine in
            try await Self.come(listener, engine, queries, version: 2)
            try await scenario.modify([LiveScenario.edit(.create, "c")])
            try await engine.fence("f", of: 1)
        }
        #expect(listener.client.state.withLock { $0.changes["next"]?.count } == 1)
    }
}
