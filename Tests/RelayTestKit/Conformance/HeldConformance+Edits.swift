import RelayModel
import Storage
import Testing

extension HeldConformance {
    static func digestEdits(_ factory: any StoreFactory) async throws {
        let bench = try await Bench(factory)
        func digest(_ seconds: Int64?, isPaused: Bool = false, at now: Int64) async throws {
            var wanted = bench.subscription.subscription
            wanted.kindness.isPaused = isPaused
            wanted.kindness.digest = try seconds.map {
                try PushDigest(json: ["seconds": .integer($0)], path: "")
            }
            _ = try await Bench.edited(.update(wanted), bench.store, at: now)
        }
        func due() async throws -> Timestamp? { try await bench.store.nextDigestDue() }
        try await digest(60, at: 5)
        // The bench's version is outdated after the edits, so the retry claims to be judged by
        // none.
        func hold(_ number: UInt64, at seconds: Int64, until end: Int64) async throws {
            var retry = bench.held(number, at: seconds, until: end, .digest)
            retry.judgedBy = nil
            try await bench.hold([retry])
        }
        try await hold(1, at: 10, until: 70)
        try await digest(120, at: 20)
        #expect(try await due() == Sample.moment(130))
        try await digest(30, at: 25)
        #expect(try await due() == Sample.moment(40))
        // New quiet hours do not change when the digest ends; they are applied when it does. A new
        // token ends the version of the device, and makes the digest due at once.
        var sparing = DeviceSparing()
        sparing.quietHours = .now(
            try QuietHours(json: ["timeZone": "UTC", "from": "22:00", "until": "07:00"], path: ""))
        var device = bench.device.device
        _ = try await bench.store.register(device, named: .device, sparing, at: Sample.moment(26))
        #expect(try await due() == Sample.moment(40))
        device.token = Sample.token(9)
        _ = try await bench.store.register(device, at: Sample.moment(27))
        #expect(try await due() == Sample.moment(27))
        try await digest(5, at: 26)
        #expect(try await due() == Sample.moment(26), "its span is over")
        try await digest(10, at: 12)
        #expect(try await due() == Sample.moment(20))
        try await digest(20, at: 5)
        #expect(try await due() == Sample.moment(25), "the clock was set back")
        try await digest(20, isPaused: true, at: 6)
        #expect(try await due() == Sample.moment(6))
        try await bench.expectBalance()
    }
}
