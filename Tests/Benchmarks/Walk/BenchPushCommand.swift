import ArgumentParser
import Crypto
import Dispatch
import Foundation
import Gateway
import GatewaySimulator
import RelayModel
import RelayServer
import Synchronization

/// Measures the gateway room alone, with a far side that answers at once.
struct BenchPushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Measures how many pushes the gateway room sends, and what one costs.",
        discussion: """
            Prints one JSON object: pushes per second, CPU seconds per 100,000 pushes, latency \
            from the hand-over to a connection to the answer, and memory. Without --rate a new \
            push is sent for every answer; with it pushes are sent at that rate. Without --url \
            pushes go to a sink in this process that accepts everything; its CPU time is told \
            apart, its memory is not. Resident memory is given after each tenth of the pushes.
            """)

    @Option(help: "The gateway, for instance https://127.0.0.1:8543.")
    var url: String?
    @Option(help: "A file of PEM certificates to trust instead of the system's.")
    var ca: String?
    @Option(help: "Pushes to measure.")
    var count = 100_000
    @Option(help: "Pushes before the measurement begins.")
    var warmUp = 2000
    @Option(help: "Pushes that are open or wait at any time.")
    var inFlight = 100
    @Option(help: "The most connections.")
    var connections = 1
    @Option(help: "The most streams on each connection.")
    var streams = CurlGatewaySettings().streamsPerConnection
    @Option(help: "The size of a payload in bytes.")
    var payload = 200
    @Option(help: "Pushes per second; 0 for as many as there are answers.")
    var rate = 0

    func validate() throws {
        if let url, GatewayEndpoint(url) == nil {
            throw ValidationError("--url must be https://host or https://host:port, not \(url)")
        }
        guard count > 0, warmUp > 0, inFlight > 0, payload >= 64, rate >= 0 else {
            throw ValidationError(
                "--count, --warm-up and --in-flight must be positive, --payload at least 64")
        }
    }

    func run() async throws {
        if let url { return try measure(url: url, ca: ca, sink: nil) }
        let place = URL(filePath: NSTemporaryDirectory())
            .appending(path: "belfry-bench-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: place) }
        try LoopbackCertificates.write(to: place.path)
        let sink = try await BenchPushSink(certificates: place.path)
        try measure(url: sink.url, ca: place.appending(path: "ca.pem").path, sink: sink)
        try await sink.close()
    }

    private func measure(url: String, ca: String?, sink: BenchPushSink?) throws {
        let load = PushLoad(
            total: count + warmUp, warmUp: warmUp, payloadBytes: payload, isPaced: rate > 0)
        let gateway = try CurlPushGateway(settings: settings(url, ca), world: world()) { ends in
            load.take(ends)
        }
        let sinkStart = sink?.cpuSecondsNow ?? 0
        load.attach(gateway)
        if rate > 0 {
            load.pace(at: rate)
        } else {
            gateway.send(load.next(min(inFlight, count + warmUp)))
        }
        load.finished.wait()
        load.detach()
        print(load.report(sinkCPU: (sink?.cpuSecondsNow ?? 0) - sinkStart))
    }

    private func settings(_ url: String, _ ca: String?) throws -> CurlGatewaySettings {
        var settings = CurlGatewaySettings()
        guard let endpoint = GatewayEndpoint(url) else { throw ExitCode.validationFailure }
        settings.production = endpoint
        settings.caFile = ca
        settings.connectionsPerCredential = connections
        settings.streamsPerConnection = streams
        return settings
    }

    private func world() throws -> GatewayWorld {
        let pem = ConcealedText(P256.Signing.PrivateKey().pemRepresentation)
        let key = GatewayCredential.SigningKey(
            teamID: "BENCHTEAM0", keyID: "BENCHKEY00", privateKeyPEM: pem)
        guard let key else { throw ExitCode.failure }
        return GatewayWorld(
            credentials: { _, _ in .signingKey(key) },
            wallClock: World.real.now, generator: World.real.generator)
    }
}

/// The pushes of a measurement, and their ends.
private final class PushLoad: Sendable {
    /// Signalled when everything has ended.
    let finished = DispatchSemaphore(value: 0)
    private let total: Int
    private let warmUp: Int
    private let isPaced: Bool
    private let template: PushNotification
    private let tokens: [DeviceToken]
    private let container: ContainerKey
    private let state: Mutex<Tally>

    private struct Tally {
        var gateway: CurlPushGateway?
        var issued = 0
        var ended = 0
        var accepted = 0
        var causes: [String: Int] = [:]
        var latencies = LatencyHistogram()
        var residentMegabytes: [Int64] = []
        var startedAt = Usage.now
        var endedAt = Usage.now
    }

    init(total: Int, warmUp: Int, payloadBytes: Int, isPaced: Bool) {
        self.total = total
        self.warmUp = warmUp
        self.isPaced = isPaced
        let frame = #"{"aps":{"content-available":1},"ck":{"pad":""}}"#
        let pad = String(repeating: "x", count: max(0, payloadBytes - frame.utf8.count))
        template = PushNotification(
            pushType: .alert, priority: 10, topic: "com.example.bench",
            expiration: Timestamp(seconds: 4_000_000_000),
            payload: Array(frame.utf8.dropLast(3)) + Array(pad.utf8) + Array(#""}}"#.utf8))
        tokens = (0..<1000).compactMap {
            let digits = String($0, radix: 16)
            return DeviceToken(rawValue: String(repeating: "a", count: 64 - digits.count) + digits)
        }
        let name = ContainerID(rawValue: "iCloud.com.example.bench")
        guard let name else { preconditionFailure("the benchmark's container has a bad name") }
        container = ContainerKey(container: name, environment: .production)
        state = Mutex(Tally())
    }

    func attach(_ gateway: CurlPushGateway) {
        state.withLock { $0.gateway = gateway }
    }

    func detach() {
        state.withLock { $0.gateway = nil }
    }

    /// Returns the next requests: at most `count`, and fewer if fewer are left.
    func next(_ count: Int) -> [PushRequest] {
        let first = state.withLock { state in
            defer { state.issued += min(count, total - state.issued) }
            return state.issued
        }
        return (first..<min(first + count, total)).map { number in
            PushRequest(
                ticket: UInt64(number),
                deliveryID: DeliveryID(
                    UUIDBytes(
                        high: UInt64(number) &* 0x9E37_79B9_7F4A_7C15, low: UInt64(number))),
                container: container, environment: .production,
                token: tokens[number % tokens.count], notification: template)
        }
    }

    /// Counts ended attempts, and replaces each with a new request unless the load is paced.
    func take(_ completions: [PushCompletion]) {
        let (gateway, isDone) = state.withLock { state in
            for completion in completions {
                state.ended += 1
                count(completion, into: &state)
                if state.ended == warmUp { state.startedAt = Usage.now }
                if state.ended % max(1, total / 10) == 0 {
                    state.residentMegabytes.append(Int64(ProcessMemory.residentBytes >> 20))
                }
            }
            if state.ended == total { state.endedAt = Usage.now }
            return (state.gateway, state.ended == total)
        }
        if isDone { finished.signal() }
        if !isPaced { gateway?.send(next(completions.count)) }
    }

    private func count(_ completion: PushCompletion, into state: inout Tally) {
        switch completion.outcome {
        case .accepted: state.accepted += 1
        case .refused(let refusal):
            state.causes["\(refusal.status) \(refusal.reason)", default: 0] += 1
        case .unknown(let cause): state.causes["unknown: \(cause.reason)", default: 0] += 1
        case .notSent(let cause): state.causes["not sent: \(cause.reason)", default: 0] += 1
        }
        guard state.ended > warmUp else { return }
        state.latencies.add(completion.latency)
    }

    /// Sends `rate` requests a second until all are sent.
    ///
    /// It sends what is due once in a millisecond. A finer step would cost this thread more than
    /// the gateway's.
    func pace(at rate: Int) {
        let start = Usage.wallNow
        var sent = 0
        while sent < total {
            let due = min(total, Int((Usage.wallNow - start) * Double(rate)))
            if due > sent {
                let batch = next(due - sent)
                state.withLock { $0.gateway }?.send(batch)
                sent = due
            }
            var rest = timespec(tv_sec: 0, tv_nsec: 1_000_000)
            nanosleep(&rest, nil)
        }
    }

    /// Returns the figures as a JSON object, without the `sinkCPU` seconds that the sink used.
    func report(sinkCPU: Double) -> String {
        let state = self.state.withLock { $0 }
        let measured = Double(max(1, state.latencies.count))
        let wall = state.endedAt.wall - state.startedAt.wall
        let cpu = state.endedAt.cpu - state.startedAt.cpu - sinkCPU
        func round(_ value: Double) -> JSONValue { .number((value * 1000).rounded() / 1000) }
        var members: [(name: String, value: JSONValue)] = [
            ("pushesPerSecond", .integer(Int64(measured / wall))),
            ("cpuSecondsPer100k", round(cpu * 1e5 / measured)),
            ("sinkCPUSecondsPer100k", round(sinkCPU * 1e5 / measured)),
            ("p50Milliseconds", round(state.latencies.milliseconds(at: 0.5))),
            ("p99Milliseconds", round(state.latencies.milliseconds(at: 0.99))),
            ("residentMegabytes", .array(state.residentMegabytes.map { .integer($0) })),
            ("maximumMegabytes", .integer(Int64(Usage.maximumResidentKilobytes / 1024))),
            ("accepted", .integer(Int64(state.accepted))),
        ]
        let others = state.causes.sorted { $0.key < $1.key }
        members.append(
            ("others", .object(JSONObject(others.map { ($0.key, .integer(Int64($0.value))) }))))
        members.append(("transport", .string(CurlPushGateway.version.description)))
        return JSONValue.object(JSONObject(members)).text
    }
}

/// A histogram of latencies in steps of 20 µs up to two seconds, in constant memory.
struct LatencyHistogram: Sendable {
    private static let step = Duration.microseconds(20)
    private var counts = [UInt32](repeating: 0, count: 100_001)
    private(set) var count = 0

    mutating func add(_ latency: Duration) {
        counts[min(counts.count - 1, max(0, Int(latency / Self.step)))] += 1
        count += 1
    }

    /// Returns the latency in milliseconds that `part` of all latencies do not exceed.
    func milliseconds(at part: Double) -> Double {
        let wanted = Int((Double(count) * part).rounded(.up))
        var seen = 0
        for (index, number) in counts.enumerated() {
            seen += Int(number)
            if seen >= wanted { return Double(index) * 0.02 }
        }
        return 0
    }
}

/// The time and CPU time of the process.
struct Usage {
    /// The monotonic clock, in seconds.
    var wall: Double
    /// The CPU seconds of all threads together.
    var cpu: Double

    static var wallNow: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    static var now: Usage {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let cpu =
            Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
        return Usage(wall: wallNow, cpu: cpu)
    }

    static var maximumResidentKilobytes: Int {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return usage.ru_maxrss
    }
}
