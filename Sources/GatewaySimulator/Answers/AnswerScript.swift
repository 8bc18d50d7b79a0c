/// One step of a script: an answer, its delay, and how often it is given.
public struct ScriptedAnswer: Sendable, Hashable {
    /// How a push that gets this answer is counted.
    public enum Accounting: String, Sendable, Hashable, CaseIterable {
        /// As ``GatewayAnswer/isAcceptedByDefault`` says for the answer.
        case byAnswer
        /// The push counts as accepted, whatever the gateway answered.
        case accepted
        /// The push does not count as accepted.
        case notAccepted
    }

    /// The answer that the gateway gives.
    public var answer: GatewayAnswer
    /// How often the step applies, at least 1; `nil` means without limit.
    public var times: Int?
    /// The range that the delay of the answer is drawn from, evenly distributed.
    public var delay: ClosedRange<Duration>
    /// How a push that gets this answer is counted.
    public var accounting: Accounting

    /// Creates a step.
    ///
    /// By default, the answer is given without limit and at once.
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

/// The pushes that a rule of a script applies to, and which of them share its steps.
public enum ScriptScope: Sendable, Hashable {
    /// All pushes, which share one sequence of steps.
    case all
    /// All pushes to this device token, in lower-case hexadecimal digits.
    case device(String)
    /// All pushes; each device token goes through the steps from the first.
    case eachDevice
    /// All pushes; each `apns-id` goes through the steps from the first: "fail twice, then accept".
    case eachPush
}

/// A sequence of steps for some pushes.
///
/// The rule no longer applies to them once its steps are used up.
public struct ScriptRule: Sendable, Hashable {
    /// The pushes that the rule applies to.
    public var scope: ScriptScope
    /// The steps, in order.
    public var answers: [ScriptedAnswer]

    /// Creates a rule that answers the pushes of `scope` with `answers`, one after the other.
    public init(_ scope: ScriptScope, _ answers: [ScriptedAnswer]) {
        self.scope = scope
        self.answers = answers
    }
}

/// The answers that a simulated gateway gives instead of accepting every push.
///
/// A push that fails one of APNs' checks is refused for that reason and uses up no step. Any other
/// push gets a step of the first rule that applies to it and has steps left. Without such a rule,
/// it is accepted.
public struct AnswerScript: Sendable, Hashable {
    /// The rules; the first one that applies decides.
    public var rules: [ScriptRule]

    /// Creates a script.
    ///
    /// A script without rules accepts every push.
    public init(_ rules: [ScriptRule] = []) {
        self.rules = rules
    }

    /// Returns a script that answers all pushes with the steps of `answers`, then accepts.
    public static func all(_ answers: ScriptedAnswer...) -> AnswerScript {
        AnswerScript([ScriptRule(.all, answers)])
    }
}

/// Plays a script and keeps track of the steps that are used up.
struct ScriptPlayer {
    /// Identifies one count of used steps: of a rule, or of a rule and a device or push.
    private enum Counter: Hashable {
        case rule(Int)
        case device(Int, String)
        case push(Int, String)
    }

    /// The maximum number of counters.
    ///
    /// All are reset when it is reached, because a gateway may run for months.
    private static let maximumCounters = 1_000_000

    private let script: AnswerScript
    private var used: [Counter: Int] = [:]

    /// Creates a player at the beginning of `script`.
    init(_ script: AnswerScript) {
        self.script = script
    }

    /// Returns the step for a push to `token` with the identifier `apnsID`, and marks it as used.
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
    /// Returns the step for the push that follows `count` others, or `nil` if all steps are used
    /// up.
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
