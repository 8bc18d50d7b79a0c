import ArgumentParser
import CoreMetrics
import Foundation
import Gateway
import GatewaySimulator
import RelayModel

/// Measures the whole walk: append, follow, match, expand, compose, send, settle.
struct BenchRelayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "relay",
        abstract: "Measure the relay end to end: from a durable change to accepted pushes.",
        discussion: """
            Prints one JSON object: pushes per second, latency from append to acceptance, CPU \
            seconds per 100,000 pushes, and memory. Every change fires --subscribers \
            subscriptions, each of whose owners has --devices devices. Without --rate changes \
            are appended as fast as they are settled; then the latency is that of the queue. \
            Without --gateway pushes go to a sink in this process, whose CPU time is told apart.
            """)

    @Option(help: "Changes to measure.")
    var changes = 10_000
    @Option(help: "Changes before the measurement begins.")
    var warmUp = 500
    @Option(help: "Devices that each change notifies.")
    var devices = 10
    @Option(help: "Users, each with a subscription of their own.")
    var users = 1000
    @Option(
        help: """
            Users whose subscriptions one change fires; more than \
            \(Limits.maximumMatchesAtOnce) are worked as ranges.
            """)
    var subscribers = 1
    @Option(help: "Changes per second, appended one by one; 0 for as many as are settled.")
    var rate = 0
    @Option(help: "Changes appended at a time, without --rate.")
    var batch = 100
    @Option(help: "The gateway, for instance https://127.0.0.1:8543.")
    var gateway: String?
    @Option(help: "A file of PEM certificates to trust instead of the system's.")
    var ca: String?
    @Option(help: "The most connections.")
    var connections = 1
    @Option(help: "The most streams on each connection.")
    var streams = 500
    @Option(help: "A directory on the disk to be measured; the files in it are removed afterwards.")
    var directory = NSTemporaryDirectory()
    @Option(name: .customLong("storage-url"), help: ArgumentHelp(BenchStore.help))
    var storageURL: String?
    @Flag(help: "Raise a badge with each push, so that no two payloads are the same.")
    var badge = false
    @Flag(help: "Leave out how subscriptions fare, to see what keeping it costs.")
    var withoutHealth = false

    func validate() throws {
        guard changes > 0, warmUp > 0, devices > 0, users > 0, rate >= 0, batch > 0 else {
            throw ValidationError("numbers must be positive")
        }
        guard subscribers > 0, users.isMultiple(of: subscribers) else {
            throw ValidationError("--users must be a multiple of --subscribers")
        }
        if let gateway, GatewayEndpoint(gateway) == nil {
            throw ValidationError("--gateway must be https://host or https://host:port")
        }
    }

    func run() async throws {
        let place = URL(filePath: directory)
            .appending(path: "belfry-bench-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: place) }
        let delays = CollectedDurations(of: "belfry_change_to_acceptance_seconds")
        MetricsSystem.bootstrap(delays)
        guard let gateway else {
            try LoopbackCertificates.write(to: place.path)
            let sink = try await BenchPushSink(certificates: place.path)
            try await measure(
                in: place, gateway: sink.url, ca: place.appending(path: "ca.pem").path, delays,
                sink: sink)
            return try await sink.close()
        }
        try await measure(in: place, gateway: gateway, ca: ca, delays, sink: nil)
    }

    private func measure(
        in place: URL, gateway: String, ca: String?, _ delays: CollectedDurations,
        sink: BenchPushSink?
    ) async throws {
        guard let endpoint = GatewayEndpoint(gateway) else { throw ExitCode.validationFailure }
        var settings = CurlGatewaySettings()
        settings.production = endpoint
        settings.caFile = ca
        settings.connectionsPerCredential = connections
        settings.streamsPerConnection = streams
        let load = RelayLoad(
            users: users, devicesPerUser: devices, subscribers: subscribers, raisesBadges: badge)
        let relay = try await BenchRelay(
            store: BenchStore(
                path: place.appending(path: "belfry.sqlite").path, url: storageURL),
            gateway: settings, load: load, countsHealth: !withoutHealth)
        let figures = try await relay.run {
            try await relay.append(warmUp, rate: 0, batch: batch)
            try await relay.waitUntilSettled()
            delays.forget()
            let start = Usage.now
            let sinkStart = try await sink?.cpuSeconds ?? 0
            try await relay.append(changes, rate: rate, batch: batch)
            try await relay.waitUntilSettled()
            let end = Usage.now
            let sinkCPU = try await (sink?.cpuSeconds ?? 0) - sinkStart
            return report(
                from: start, to: end, sinkCPU: sinkCPU, delays.sorted, others: delays.others)
        }
        print(figures.text)
    }

    private func report(
        from start: Usage, to end: Usage, sinkCPU: Double, _ delays: [Int64], others: Int
    ) -> JSONValue {
        func round(_ value: Double) -> JSONValue { .number((value * 1000).rounded() / 1000) }
        func milliseconds(_ part: Double) -> JSONValue {
            guard !delays.isEmpty else { return .null }
            let place = min(delays.count - 1, Int(Double(delays.count) * part))
            return round(Double(delays[place]) / 1e6)
        }
        let pushes = Double(delays.count)
        let wall = end.wall - start.wall
        return [
            "pushesPerSecond": .integer(Int64(pushes / wall)),
            "changesPerSecond": .integer(Int64(Double(changes) / wall)),
            "appendToAcceptance": [
                "p50Milliseconds": milliseconds(0.5), "p99Milliseconds": milliseconds(0.99),
                "maximumMilliseconds": milliseconds(1),
            ],
            "cpuSecondsPer100k": round((end.cpu - start.cpu - sinkCPU) * 1e5 / max(1, pushes)),
            "sinkCPUSecondsPer100k": round(sinkCPU * 1e5 / max(1, pushes)),
            "residentMegabytes": .integer(Int64(Usage.maximumResidentKilobytes / 1024)),
            "accepted": .integer(Int64(delays.count)),
            "owed": .integer(Int64(changes * subscribers * devices)),
            "otherAttempts": .integer(Int64(others)),
        ]
    }
}
