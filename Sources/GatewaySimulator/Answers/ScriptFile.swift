#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A script read from a JSON file (`docs/gateway-simulator.md`): rules, and the known devices.
public struct ScriptFile: Sendable, Hashable {
    /// A place where a file is not a valid script, and what is allowed there.
    public struct Fault: Error, Hashable, CustomStringConvertible {
        /// The place: names of members and indices of elements (from 0), joined by dots.
        public var place: String
        /// What is wrong, and what is allowed.
        public var problem: String

        /// The place and the problem in one sentence.
        public var description: String {
            place.isEmpty ? "the script \(problem)" : "the script's '\(place)' \(problem)"
        }
    }

    /// The maximum size of a file, in bytes.
    public static let maximumBytes = 1 << 20

    /// The rules.
    public var script: AnswerScript
    /// The gateway's knowledge of device tokens, by token in lower case.
    public var devices: [String: DeviceStanding]

    /// Parses the text of a script file.
    ///
    /// - Throws: ``Fault`` at the first invalid place.
    public init(json: Data) throws(Fault) {
        guard json.count <= Self.maximumBytes else {
            throw Fault(place: "", problem: "is larger than \(Self.maximumBytes) bytes")
        }
        if let fault = JSONText.fault(in: Array(json)) {
            throw Fault(
                place: "",
                problem: "is not a JSON object: at byte \(fault.offset), \(fault.expected) "
                    + "was expected")
        }
        guard let tree = try? JSONDecoder().decode(ScriptTree.self, from: json) else {
            throw Fault(place: "", problem: "is not JSON")
        }
        var file = try ScriptMembers(tree, at: "")
        var rules: [ScriptRule] = []
        for place in try file.list("rules") { rules.append(try Self.rule(place)) }
        script = AnswerScript(rules)
        devices = try Self.devices(file.take("devices"))
        try file.finish()
    }

    private static func rule(_ place: ScriptPlace) throws(Fault) -> ScriptRule {
        var rule = try ScriptMembers(place.tree, at: place.path)
        let scope = try scope(rule.take("for"))
        var answers: [ScriptedAnswer] = []
        for place in try rule.list("answers") { answers.append(try ScriptedAnswer(place)) }
        try rule.finish()
        return ScriptRule(scope, answers)
    }

    private static func scope(_ place: ScriptPlace?) throws(Fault) -> ScriptScope {
        guard let place else { return .all }
        switch place.tree {
        case .string("all"): return .all
        case .string("eachDevice"): return .eachDevice
        case .string("eachPush"): return .eachPush
        case .object:
            var members = try ScriptMembers(place.tree, at: place.path)
            let token = try members.text("device")
            try members.finish()
            return .device(token.lowercased())
        case .string, .number, .bool, .array, .null:
            throw place.fault("must be 'all', 'eachDevice', 'eachPush' or {\"device\": …}")
        }
    }

    private static func devices(
        _ place: ScriptPlace?
    ) throws(Fault) -> [String: DeviceStanding] {
        guard let place else { return [:] }
        guard case .object(let members) = place.tree else {
            throw place.fault("must be an object")
        }
        var devices: [String: DeviceStanding] = [:]
        for (token, tree) in members {
            let path = "\(place.path).\(token)"
            devices[token.lowercased()] = try standing(ScriptMembers(tree, at: path))
        }
        return devices
    }

    private static func standing(
        _ start: ScriptMembers
    ) throws(Fault) -> DeviceStanding {
        var members = start
        let name = try members.word(
            "standing", of: ["registered", "unregistered", "expired", "otherEnvironment"])
        let standing: DeviceStanding
        switch name {
        case "registered":
            let topics = try members.texts("topics")
            standing = .registered(topics: topics.map(Set.init))
        case "unregistered":
            standing = .unregistered(since: try members.moment("since"))
        case "expired":
            standing = .expired(since: try members.moment("since"))
        default:
            standing = .otherEnvironment
        }
        try members.finish()
        return standing
    }
}

extension ScriptedAnswer {
    /// Parses one step of a script file.
    init(_ place: ScriptPlace) throws(ScriptFile.Fault) {
        var members = try ScriptMembers(place.tree, at: place.path)
        let answer = try GatewayAnswer(&members)
        let times = try members.number("times", in: 1...Int.max)
        let delay = try members.milliseconds("delayMilliseconds")
        let accounting = try members.choice("accounting", Accounting.self) ?? .byAnswer
        try members.finish()
        self.init(answer, times: times, delay: delay, accounting: accounting)
    }
}

extension GatewayAnswer {
    private static let words = [
        "accept", "refuse", "raw", "silence", "resetStream", "goAway", "closeConnection",
        "freezeConnection", "acceptLimitingStreams",
    ]

    /// Takes the members of an answer out of those of a step.
    init(_ members: inout ScriptMembers) throws(ScriptFile.Fault) {
        switch try members.word("do", of: Self.words) {
        case "accept": self = .accept
        case "refuse": self = .refuse(try GatewayRefusal(&members))
        case "raw":
            self = .raw(
                status: try members.requiredNumber("status", in: 200...599),
                contentType: try members.optionalText("contentType") ?? "text/html",
                body: try members.optionalText("body") ?? "")
        case "silence": self = .silence
        case "resetStream":
            self = .resetStream(try members.choice("code", StreamReset.self) ?? .refused)
        case "goAway": self = .goAway(try GoAway(&members))
        case "closeConnection":
            self = .closeConnection(try members.choice("end", ConnectionEnd.self) ?? .finish)
        case "freezeConnection": self = .freezeConnection
        default:
            self = .acceptLimitingStreams(
                to: try members.requiredNumber("streams", in: 0...1_000_000))
        }
    }
}

extension GatewayRefusal {
    /// Takes the members of a refusal out of those of a step.
    init(_ members: inout ScriptMembers) throws(ScriptFile.Fault) {
        self.init(
            status: try members.requiredNumber("status", in: 400...599),
            reason: try members.text("reason"), timestamp: try members.optionalMoment("timestamp"),
            retryAfter: try members.number("retryAfter", in: 0...Int.max))
    }
}

extension GoAway {
    /// Takes the members of a GOAWAY out of those of a step.
    init(_ members: inout ScriptMembers) throws(ScriptFile.Fault) {
        self.init(
            lastStream: try members.choice("lastStream", LastStream.self) ?? .highest,
            ending: try members.choice("ending", Ending.self) ?? .drain,
            errorCode: try members.choice("code", ErrorCode.self) ?? .noError,
            reason: try members.optionalText("reason"))
    }
}
