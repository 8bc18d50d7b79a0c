package import RelayModel

/// What one check of the relay's standing came to, for `belfry doctor` and the console alike.
package struct Finding: Sendable, Hashable {
    /// How it stands, the worst last.
    package enum State: String, Sendable, Hashable, Comparable, CaseIterable {
        /// Nothing to do.
        case ok
        /// It could not be looked at, or there is nothing to look at yet.
        case unknown
        /// It works, and will not go on working by itself.
        case warn
        /// It does not work.
        case fail

        package static func < (left: Self, right: Self) -> Bool {
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

    /// What kind of thing was looked at.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case relay, log, clock, disk, backup, intake, gateway, credential, source, leftovers
    }

    /// What it is about, for who leads on from there.
    package struct Subject: Sendable, Hashable {
        let kind: Kind
        /// The container and its environment; `nil` for the relay as a whole.
        var container: Container?
        var source: String?

        /// A container by its words.
        struct Container: Sendable, Hashable {
            let name: String
            let environment: String
        }

        init(_ kind: Kind, of container: JSONValue? = nil, source: String? = nil) {
            self.kind = kind
            self.container = container.map {
                Container(name: $0.words(["container"]), environment: $0.words(["environment"]))
            }
            self.source = source
        }
    }

    /// What was looked at.
    package let check: String
    package let state: State
    /// What was found.
    package let text: String
    /// The command to run next; `nil` where nothing is to be done.
    package var next: String?
    /// What it is about.
    var subject = Subject(.relay)

    /// The same, of a thing.
    func about(_ kind: Kind, of container: JSONValue? = nil, source: String? = nil) -> Finding {
        var finding = self
        finding.subject = Subject(kind, of: container, source: source)
        return finding
    }

    /// The members that tell of it.
    var json: JSONValue {
        var object: JSONObject = [
            "check": .string(check), "state": .string(state.rawValue), "text": .string(text),
        ]
        object["next"] = next.map { .string($0) }
        object["kind"] = .string(subject.kind.rawValue)
        object["container"] = subject.container.map { .string($0.name) }
        object["environment"] = subject.container.map { .string($0.environment) }
        object["source"] = subject.source.map { .string($0) }
        return .object(object)
    }
}

/// All that was found, and the verdict.
package struct Diagnosis: Sendable, Hashable {
    package let findings: [Finding]

    /// The worst of what was found, where what could not be looked at does not count.
    package var state: Finding.State {
        findings.map(\.state).filter { $0 != .unknown }.max() ?? .ok
    }

    /// One sentence.
    package var verdict: String {
        let failing = findings.filter { $0.state == .fail }
        let warning = findings.filter { $0.state == .warn }
        let first = (failing + warning).first
        let rest = failing.count + warning.count - 1
        var said = first?.text ?? ""
        if rest > 0 {
            // A sentence goes on.
            if said.hasSuffix(".") { said.removeLast() }
            said += ", and \(rest) more"
        }
        return switch state {
        case .ok, .unknown: "ok: nothing is to be done"
        case .warn: "warn: \(said)"
        case .fail: "fail: \(said)"
        }
    }

    /// Whether a script should be told that something is wrong.
    package func isBad(strict: Bool) -> Bool { strict ? state >= .warn : state == .fail }

    package var json: JSONValue {
        [
            "state": .string(state.rawValue), "verdict": .string(verdict),
            "checks": .array(findings.map(\.json)),
        ]
    }

    /// As people read it: the verdict, then a line for each check with what to run below.
    package var lines: [String] {
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
