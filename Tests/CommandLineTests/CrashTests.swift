import Foundation
import GatewaySimulator
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// What the relay promises across kill -9, and how it ends when it is asked to.
@Suite(.serialized, .timeLimit(.minutes(30))) struct CrashTests {
    /// A simulated gateway, a store file, and a relay on it with the devices of alice and bob.
    private struct Rig {
        let gateway: SampleGateway
        let path: String
        var relay: ServedBelfry
        var container: SampleContainer

        static func furnish(
            _ script: AnswerScript = AnswerScript(), _ settings: [String: String] = [:]
        ) async throws -> Rig {
            let folder = try Folder.make()
            let path = folder.appending(path: "relay.sqlite").path
            let gateway = try await SampleGateway.start(script, in: folder)
            let relay = try await ServedBelfry.start(on: path, for: gateway, settings)
            let container = try await SampleContainer.create(on: relay.client, for: gateway)
            for device in SampleDevice.usual { try await container.register(device) }
            return Rig(gateway: gateway, path: path, relay: relay, container: container)
        }

        /// Starts the relay again on the same file.
        mutating func restart(_ settings: [String: String] = [:]) async throws {
            relay = try await ServedBelfry.start(on: path, for: gateway, settings)
            container.client = relay.client
        }

        /// Ends the relay, which must exit with 0, and stops the gateway.
        func close() async {
            let code = await relay.end()
            #expect(code == 0, "\(relay.logged)")
            await gateway.simulated.stop()
        }

        /// Waits until `count` deliveries were accepted, each counted once, and returns the pushes.
        func accepted(_ count: Int) async throws -> [ReceivedPush] {
            _ = try await gateway.simulated.totals(within: .patience) {
                $0.accepted - $0.duplicates >= count
            }
            return gateway.simulated.pushes.filter(\.isAccepted)
        }
    }

    // MARK: kill -9

    /// The gateway's answers that leave a push open when the relay is killed.
    static let openEndings: [GatewayAnswer] = [
        .silence, .freezeConnection,
        .refuse(GatewayRefusal(status: 503, reason: "ServiceUnavailable", retryAfter: 3)),
    ]

    @Test(arguments: openEndings)
    func `changes acknowledged but not delivered at a crash are delivered after the next start`(
        answer: GatewayAnswer
    ) async throws {
        var rig = try await Rig.furnish(.all(ScriptedAnswer(answer)))
        try await rig.container.save(.query("q"))
        try await rig.container.post(.change("create", "a1"))
        _ = try await rig.gateway.simulated.pushes(count: 1, within: .patience)
        await rig.relay.kill()
        let before = Set(rig.gateway.simulated.pushes.map(\.apnsID))
        rig.gateway.simulated.play(AnswerScript())
        try await rig.restart()
        let arrived = try await rig.accepted(2)
        await rig.close()
        #expect(
            arrived.map(\.line).sorted() == ["phone: qry q created a1", "tablet: qry q created a1"])
        #expect(before.isSubset(of: arrived.map(\.apnsID)))
        #expect(rig.gateway.simulated.totals.duplicates == 0)
    }

    @Test func `a change is delivered although the relay died while no gateway was reachable`()
        async throws
    {
        var rig = try await Rig.furnish()
        try await rig.container.save(.query("q"), as: "bob")
        let nowhere = ["--apns-url": "https://127.0.0.1:1"]
        let code = await rig.relay.end()
        #expect(code == 0)
        try await rig.restart(nowhere)
        try await rig.container.post(.change("create", "a1"))
        await rig.relay.kill()
        try await rig.restart()
        let arrived = try await rig.accepted(1)
        await rig.close()
        #expect(arrived.map(\.line) == ["bobs: qry q created a1"])
    }

    @Test func `a once subscription with an open push at a crash fires for that change`()
        async throws
    {
        var rig = try await Rig.furnish(.all(ScriptedAnswer(.silence)))
        try await rig.container.save(.query("once", adding: ["firesOnce": true]), as: "bob")
        try await rig.container.post(.change("create", "a1"))
        _ = try await rig.gateway.simulated.pushes(count: 1, within: .patience)
        await rig.relay.kill()
        rig.gateway.simulated.play(AnswerScript())
        try await rig.restart()
        try await rig.container.post(.change("create", "a2"))
        _ = try await rig.accepted(1)
        await rig.close()
        let pushes = rig.gateway.simulated.pushes
        #expect(Set(pushes.map(\.line)) == ["bobs: qry once created a1"])
        #expect(Set(pushes.map(\.apnsID)).count == 1)
    }

    @Test func `a crash in a large fan-out loses nothing and repeats at most the window`()
        async throws
    {
        let window = 64
        let users = 20
        let devices = 15
        let settings = ["--delivery-in-flight": "\(window)"]
        let script = AnswerScript([
            ScriptRule(
                .all, [ScriptedAnswer(.accept, times: 100), ScriptedAnswer(.silence)])
        ])
        var rig = try await Rig.furnish(script, settings)
        try await Self.populate(rig.container, users: users, devices: devices)
        try await rig.container.post(.change("create", "a1"))
        _ = try await rig.gateway.simulated.pushes(count: 101, within: .patience)
        await rig.relay.kill()
        rig.gateway.simulated.play(AnswerScript())
        try await rig.restart(settings)
        let arrived = try await rig.accepted(users * devices)
        await rig.close()
        #expect(Set(arrived.map(\.deviceName)).count == users * devices)
        #expect(Set(arrived.map(\.apnsID)).count == users * devices)
        #expect(rig.gateway.simulated.totals.duplicates <= window)
        Self.checkRepetitions(rig.gateway.simulated.pushes)
    }

    /// Checks that a repeated push equals the first one, including its badge.
    private static func checkRepetitions(_ pushes: [ReceivedPush]) {
        for (id, same) in Dictionary(grouping: pushes, by: \.apnsID) {
            #expect(Set(same.map(\.payload)).count == 1, "\(id)")
            #expect(Set(same.map(\.deviceToken)).count == 1, "\(id)")
        }
    }

    private static func populate(
        _ container: SampleContainer, users: Int, devices: Int
    ) async throws {
        try await withThrowingTaskGroup { group in
            for user in 0..<users {
                group.addTask {
                    for device in 0..<devices {
                        try await container.register(
                            SampleDevice(name: "d\(user)-\(device)", owner: "user\(user)"))
                    }
                    try await container.save(
                        .query("q", info: ["alertBody": "New", "shouldBadge": true]),
                        as: "user\(user)")
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `every change acknowledged before a crash is delivered`()
        async throws
    {
        var rig = try await Rig.furnish()
        try await rig.container.save(.query("q"), as: "bob")
        let container = rig.container
        let acknowledged = AcknowledgedNames()
        await withTaskGroup { group in
            for writer in 0..<4 {
                group.addTask {
                    for number in 0..<10_000 {
                        let name = "w\(writer)-\(number)"
                        guard (try? await container.post(.change("create", name))) != nil else {
                            return
                        }
                        await acknowledged.add(name)
                    }
                }
            }
            await acknowledged.wait(for: 100)
            await rig.relay.kill()
        }
        let names = await acknowledged.names
        try await rig.restart()
        let arrived = try await Self.arrivals(of: names, rig.gateway)
        await rig.close()
        #expect(names.count >= 100 && arrived.isSuperset(of: names))
        Self.checkRepetitions(rig.gateway.simulated.pushes)
    }

    /// Waits until pushes about all of `names` were accepted, and returns the names of all records
    /// that pushes were about.
    private static func arrivals(
        of names: Set<String>, _ gateway: SampleGateway
    ) async throws -> Set<String> {
        var count = names.count
        while true {
            let wanted = count
            _ = try await gateway.simulated.totals(within: .patience) {
                $0.accepted - $0.duplicates >= wanted
            }
            let arrived = Set(
                gateway.simulated.pushes.filter(\.isAccepted)
                    .compactMap { $0.line.split(separator: " ").last.map(String.init) })
            // Some of the pushes that arrived may be about changes that were never acknowledged.
            if arrived.isSuperset(of: names) { return arrived }
            count += 1
        }
    }

    // MARK: Ending

    @Test(arguments: [SIGTERM, SIGINT])
    func `on a signal the relay finishes what is in flight and exits with 0`(
        signal: Int32
    ) async throws {
        let slow = ScriptedAnswer(.accept, delay: .milliseconds(400) ... .milliseconds(400))
        var rig = try await Rig.furnish(.all(slow))
        try await rig.container.save(.query("q"))
        try await rig.container.post(.change("create", "a1"))
        _ = try await rig.gateway.simulated.pushes(count: 2, within: .patience)
        let code = await rig.relay.end(signal)
        #expect(code == 0, "\(rig.relay.logged)")
        #expect(rig.gateway.simulated.pushes.filter(\.isAnswered).count == 2)
        // The relay owes nothing of it any more.
        try await rig.restart()
        try await rig.container.post(.change("create", "a2"))
        _ = try await rig.accepted(4)
        await rig.close()
        #expect(rig.gateway.simulated.totals.received == 4)
    }

    @Test func `deliveries that cannot finish in time are kept and made after the next start`()
        async throws
    {
        var rig = try await Rig.furnish(
            .all(ScriptedAnswer(.silence)), ["--shutdown-grace-seconds": "1"])
        try await rig.container.save(.query("q"), as: "bob")
        try await rig.container.post(.change("create", "a1"))
        _ = try await rig.gateway.simulated.pushes(count: 1, within: .patience)
        let code = await rig.relay.end()
        #expect(code == 0, "\(rig.relay.logged)")
        rig.gateway.simulated.play(AnswerScript())
        try await rig.restart()
        _ = try await rig.accepted(1)
        await rig.close()
        #expect(Set(rig.gateway.simulated.pushes.map(\.apnsID)).count == 1)
    }

    // MARK: One file, one relay

    @Test func `a second relay on the same file is refused and the first continues`() async throws {
        let rig = try await Rig.furnish()
        let second = try await BuiltBelfry.run(
            ServedBelfry.arguments(on: rig.path, for: rig.gateway))
        #expect(second.code == 69)
        #expect(second.complaint.contains("\(rig.path) is in use by "), "\(second.complaint)")
        #expect(second.complaint.hasSuffix(": one relay at a time\n"), "\(second.complaint)")
        let command = try await BuiltBelfry.run(
            ["containers", "list", "--database", rig.path])
        #expect(command.code == 69)
        #expect(command.complaint.contains("one relay at a time"), "\(command.complaint)")
        try await rig.container.save(.query("q"), as: "bob")
        try await rig.container.post(.change("create", "a1"))
        _ = try await rig.accepted(1)
        await rig.close()
    }

    @Test func `a file of a newer version is refused and left alone`() async throws {
        let folder = try Folder.make()
        let file = folder.appending(path: "relay.sqlite")
        let made = try await BuiltBelfry.run(["migrate", "--database", file.path])
        #expect(made.code == 0, "\(made.complaint)")
        // Bytes 60 to 63 of a SQLite file are its user version.
        var bytes = try Data(contentsOf: file)
        bytes.replaceSubrange(60..<64, with: [0, 0, 0, 99])
        try bytes.write(to: file)
        // A newer Belfry would leave matching checksums.
        try RelayStore.reseal(path: file.path)
        bytes = try Data(contentsOf: file)
        let gateway = try await SampleGateway.start(in: folder)
        let commands = [
            ServedBelfry.arguments(on: file.path, for: gateway),
            ["migrate", "--database", file.path], ["containers", "list", "--database", file.path],
        ]
        for command in commands {
            let ending = try await BuiltBelfry.run(command)
            #expect(ending.code == 69, "\(command[0]): \(ending.complaint)")
            #expect(
                ending.complaint.contains("was written by a newer Belfry (schema version 99"),
                "\(command[0]): \(ending.complaint)")
        }
        #expect(try Data(contentsOf: file) == bytes)
        await gateway.simulated.stop()
    }
}

/// The names of the changes that the relay answered with a 2xx status.
private actor AcknowledgedNames {
    private(set) var names: Set<String> = []
    private var waiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?

    func add(_ name: String) {
        names.insert(name)
        guard let waiter, names.count >= waiter.count else { return }
        self.waiter = nil
        waiter.continuation.resume()
    }

    /// Waits until there are `count` names.
    func wait(for count: Int) async {
        guard names.count < count else { return }
        await withCheckedContinuation { waiter = (count, $0) }
    }
}
