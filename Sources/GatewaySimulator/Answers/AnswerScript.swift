/// One step of a script: an answer, when it is given, and how often.
public struct ScriptedAnswer: Sendable, Hashable {
    /// What is accounted of a push that got this answer.
    public enum Accounting: String, Sendable, Hashable, CaseIterable {
        /// As ``GatewayAnswer/isAcceptedByDefault`` says.
        case byAnswer
        /// The gateway has taken the push on, whatever it answered.
        case accepted
        /// The gateway has not taken the push on.
        case notAccepted
    }

    /// What is done.
    public var answer: GatewayAnswer
    /// How often, at least 1; `nil` is forever.
    public var times: Int?
    /// How long the answer takes: drawn evenly from this range.
    public var delay: ClosedRange<Duration>
    /// Whether the push counts as accepted.
    public var accounting: Accounting

    /// Without `times` the answer is given forever, and without `delay` at once.
    public init(
        _ answer: GatewayAnswer, times: Int? = nil, delay: ClosedRange<Duration> = .zero ... .zero,
        accounting: Accounting = .byAnswer
    ) {
        self.answer = answer
        self.times = times
        self.delay = delay
        self.accounting = accounting
    }

    /// Whether a push that gets this answer counts as accepted.
    public var isAccepted: Bool {
        switch accounting {
        case .byAnswer: answer.isAcceptedByDefault
        case .accepted: true
        case .notAccepted: false
        }
    }
}

/// Which pushes a rule of a script is about, and which of them share its steps.
public enum ScriptScope: Sendable, Hashable {
    /// All pushes, one sequence of steps for all of them together.
    case all
    /// All pushes to this device token, hexadecimal in lower case.
    case device(String)
    /// All pushes, with the steps from the first for each device token.
    case eachDevice
    /// All pushes, with the steps from the first for each `apns-id`: "fail twice, then accept".
    case eachPush
}

/// A sequence of steps for some pushes; when its steps are used up, the rule is over for them.
public struct ScriptRule: Sendable, Hashable {
    /// Which pushes.
    public var scope: ScriptScope
    /// What they get, in order.
    public var answers: [ScriptedAnswer]

    /// The pushes of `scope` get `answers` one after the other.
    public init(_ scope: ScriptScope, _ answers: [ScriptedAnswer]) {
        self.scope = scope
        self.answers = answers
    }
}

/// What a simulated gateway answers instead of accepting.
///
/// A push that fails one of APNs' checks is refused for that, and uses up no step. For any other
/// the first rule decides that is about it and has steps left; without one it is accepted.
public struct AnswerScript: Sendable, Hashable {
    /// The rules, the first that applies decides.
    public var rules: [ScriptRule]

    /// Creates a script; without rules everything is accepted.
    public init(_ rules: [ScriptRule] = []) {
        self.rules = rules
    }

    /// Answers every push with the steps of `answers`, then accepts.
    public static func all(_ answers: ScriptedAnswer...) -> AnswerScript {
        AnswerScript([ScriptRule(.all, answers)])
    }
}

/// Plays a script: knows which steps are used up.
struct ScriptPlayer {
    /// Whose steps are counted.
    private enum Counter: Hashable {
        case rule(Int)
        case device(Int, String)
        case push(Int, String)
    }

    /// Counters beyond this are forgotten, all at once: a gateway may run for months.
    private static let maximumCounters = 1_000_000

    private let script: AnswerScript
    private var used: [Counter: Int] = [:]

    /// Begins `script`.
    init(_ script: AnswerScript) {
        self.script = script
    }

    /// The step for a push to `token` with the identifier `apnsID`, which is used up by this.
    mutating func next(token: String, apnsID: String) -> ScriptedAnswer {
        for (index, rule) in script.rules.enumerated() {
            guard let counter = counter(of: rule, at: index, token: token, apnsID: apnsID) else {
                continue
            }
            let count = used[counter, default: 0]
            guard let step = rule.step(after: count) else { continue }
            if used.count >= Self.maximumCounters { used.removeAll() }
            used[counter] = count + 1
            return step
        }
        return ScriptedAnswer(.accept)
    }

    private func counter(
        of rule: ScriptRule, at index: Int, token: String, apnsID: String
    ) -> Counter? {
        switch rule.scope {
        case .all: .rule(index)
        case .device(let device): device.lowercased() == token ? .rule(index) : nil
        case .eachDevice: .device(index, token)
        case .eachPush: .push(index, apnsID)
        }
    }
}

extension ScriptRule {
    /// The step for the push after `count` others, or `nil` if the steps are used up.
    func step(after count: Int) -> ScriptedAnswer? {
        var remaining = count
        for answer in answers {
            guard let times = answer.times else { return answer }
            if remaining < times { return answer }
            remaining -= times
        }
        return nil
    }
}
