import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Decides the answer to a push: APNs' checks first, then the script.
final class GatewayJudge: Sendable {
    /// A push that has arrived and is not judged yet.
    struct Arrival {
        /// The number of the connection.
        var connection: Int
        /// The number of the stream.
        var stream: Int
        /// The header block.
        var headers: [HeaderField]
        /// The body.
        var payload: [UInt8]
    }

    /// The decision on one push.
    struct Verdict {
        /// The push, without its number.
        var push: ReceivedPush
        /// The delay of the answer.
        var delay: Duration
        /// Whether the push had a valid provider token.
        var isAuthenticated: Bool
    }

    private struct State {
        var player: ScriptPlayer
        var devices: [String: DeviceStanding]
        var generator: SplitMix64
    }

    private let configuration: SimulatedGatewayConfiguration
    private let state: Mutex<State>

    /// Creates a judge that applies the rules of `configuration`.
    init(_ configuration: SimulatedGatewayConfiguration) {
        self.configuration = configuration
        var devices: [String: DeviceStanding] = [:]
        for (token, standing) in configuration.devices { devices[token.lowercased()] = standing }
        state = Mutex(
            State(
                player: ScriptPlayer(configuration.script), devices: devices,
                generator: SplitMix64(seed: configuration.seed)))
    }

    /// The rules for the provider tokens of a new connection.
    var authorityRules: ConnectionAuthority.Rules {
        ConnectionAuthority.Rules(
            trust: configuration.trust, environment: configuration.environment,
            maximumAge: configuration.maximumProviderTokenAge.components.seconds,
            minimumUpdateInterval: configuration.minimumProviderTokenInterval.components.seconds,
            clockTolerance: configuration.clockTolerance.components.seconds,
            afterExpiredToken: configuration.afterExpiredToken)
    }

    /// Replaces the script and starts the new one from its beginning.
    func replaceScript(_ script: AnswerScript) {
        state.withLock { $0.player = ScriptPlayer(script) }
    }

    /// Records the standing of a device token; `nil` forgets it.
    func setStanding(_ standing: DeviceStanding?, of token: String) {
        state.withLock { $0.devices[token.lowercased()] = standing }
    }

    /// Judges a push.
    ///
    /// `authority` is the state of the push's connection; a new provider token changes it.
    func judge(_ arrival: Arrival, authority: inout ConnectionAuthority) -> Verdict {
        let receivedAt = configuration.now()
        let token = PushCheck.token(inPath: arrival.headers[":path"] ?? "") ?? ""
        let apnsID = arrival.headers["apns-id"].flatMap {
            PushCheck.isCanonicalUUID($0) ? $0 : nil
        }
        var push = ReceivedPush(
            number: 0, connection: arrival.connection, stream: arrival.stream,
            receivedAt: receivedAt, headers: arrival.headers, deviceToken: token,
            payload: arrival.payload, apnsID: apnsID ?? UUID().uuidString.lowercased(),
            answer: .accept, explanation: nil, isAccepted: true, isAnswered: false)
        var isAuthenticated = false
        do throws(PushFault) {
            try check(push, &authority, isAuthenticated: &isAuthenticated)
            let (step, delay) = play(for: push)
            push.answer = step.answer
            push.isAccepted = step.isAccepted
            return Verdict(push: push, delay: delay, isAuthenticated: true)
        } catch {
            push.answer = .refuse(error.refusal)
            push.explanation = error.explanation
            push.isAccepted = false
            return Verdict(push: push, delay: .zero, isAuthenticated: isAuthenticated)
        }
    }

    private func check(
        _ push: ReceivedPush, _ authority: inout ConnectionAuthority, isAuthenticated: inout Bool
    ) throws(PushFault) {
        let check = PushCheck(
            headers: push.headers, payload: push.payload,
            missingPushType: configuration.missingPushType)
        try check.checkRoute()
        let now = Int64(push.receivedAt.timeIntervalSince1970.rounded(.down))
        let provider = try authority.judge(push.headers["authorization"], now: now).get()
        isAuthenticated = true
        let topic = try check.checkContent()
        for allowed in [configuration.topics, provider.topics] {
            guard let allowed, !allowed.contains(topic) else { continue }
            throw PushFault(
                400, "TopicDisallowed", "the provider may not push to the topic '\(topic)'")
        }
        try checkDevice(push.deviceToken, topic: topic)
    }

    private func checkDevice(_ token: String, topic: String) throws(PushFault) {
        let standing = state.withLock { $0.devices[token] }
        if let fault = standing?.fault(topic: topic) { throw fault }
        if standing == nil, configuration.unknownDevices == .refused {
            throw PushFault(400, "BadDeviceToken", "the device token is not registered here")
        }
    }

    private func play(for push: ReceivedPush) -> (ScriptedAnswer, Duration) {
        state.withLock { state in
            let step = state.player.next(token: push.deviceToken, apnsID: push.apnsID)
            let (low, high) = (step.delay.lowerBound, step.delay.upperBound)
            guard low < high else { return (step, low) }
            let share = Double.random(in: 0...1, using: &state.generator)
            return (step, low + (high - low) * share)
        }
    }
}

/// A small seeded generator of random numbers (Steele, Lea and Flood, 2014).
struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    /// Creates a generator that starts at `seed`.
    init(seed: UInt64) {
        state = seed
    }

    /// Returns the next number.
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
