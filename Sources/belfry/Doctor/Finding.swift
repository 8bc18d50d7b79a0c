import RelayModel

/// What one check of `belfry doctor` came to.
struct Finding: Sendable, Hashable {
    /// How it stands, the worst last.
    enum State: String, Sendable, Hashable, Comparable, CaseIterable {
        /// Nothing to do.
        case ok
        /// It could not be looked at, or there is nothing to look at yet.
        case unknown
        /// It works, and will not go on working by itself.
        case warn
        /// It does not work.
        case fail

        static func < (left: Self, right: Self) -> Bool {
            left.rank < right.rank
        }

        private var rank: Int {
            switch self {
            case .ok: 0
            case .unknown: 1
            case .warn: 2
            case .fail: 3
            }
        }
    }

    /// What was looked at.
    let check: String
    let state: State
    /// What was found.
    let text: String
    /// The command to run next; `nil` where nothing is to be done.
    var next: String?

    /// The members that tell of it.
    var json: JSONValue {
        var object: JSONObject = [
            "check": .string(check), "state": .string(state.rawValue), "text": .string(text),
        ]
        object["next"] = next.map { .string($0) }
        return .object(object)
    }
}

/// All that was found, and the verdict.
struct Diagnosis: Sendable, Hashable {
    let findings: [Finding]

    /// The worst of what was found, where what could not be looked at does not count.
    var state: Finding.State {
        findings.map(\.state).filter { $0 != .unknown }.max() ?? .ok
    }

    /// One sentence.
    var verdict: String {
        let failing = findings.filter { $0.state == .fail }
        let warning = findings.filter { $0.state == .warn }
        let first = (failing + warning).first
        let rest = failing.count + warning.count - 1
        let more = rest > 0 ? ", and \(rest) more" : ""
        return switch state {
        case .ok, .unknown: "ok: nothing is to be done"
        case .warn: "warn: \(first?.text ?? "")\(more)"
        case .fail: "fail: \(first?.text ?? "")\(more)"
        }
    }

    /// Whether a script should be told that something is wrong.
    func isBad(strict: Bool) -> Bool { strict ? state >= .warn : state == .fail }

    var json: JSONValue {
        [
            "state": .string(state.rawValue), "verdict": .string(verdict),
            "checks": .array(findings.map(\.json)),
        ]
    }

    /// As people read it: the verdict, then a line for each check with what to run below.
    var lines: [String] {
        let width = findings.map(\.check.count).max() ?? 0
        return [verdict, ""]
            + findings.flatMap { finding -> [String] in
                let padding = String(repeating: " ", count: width - finding.check.count)
                let state = finding.state == .unknown ? "-" : finding.state.rawValue
                let mark = state + String(repeating: " ", count: 4 - state.count)
                let line = "\(mark)  \(finding.check)\(padding)  \(finding.text)"
                return [line] + (finding.next.map { ["        next: \($0)"] } ?? [])
            }
    }
}
