package import RelayModel

/// The result of one check of the relay, for `belfry doctor` and the console.
package struct Finding: Sendable, Hashable {
    /// The verdict of a check, from the best to the worst.
    package enum State: String, Sendable, Hashable, Comparable, CaseIterable {
        /// Nothing needs to be done.
        case ok
        /// The check was not possible, or there is nothing to check yet.
        case unknown
        /// It works, but will fail unless somebody acts.
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

    /// The kind of thing that was checked.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case relay, log, clock, disk, backup, intake, gateway, credential, source, leftovers
    }

    /// The subject of a finding, from which a page can link to details.
    package struct Subject: Sendable, Hashable {
        let kind: Kind
        /// The container and its environment; `nil` for the relay as a whole.
        var container: Container?
        var source: String?

        /// A container, by its name and environment.
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

    /// The name of the check.
    package let check: String
    /// The verdict.
    package let state: State
    /// What was found, as a sentence.
    package let text: String
    /// The command to run next; `nil` if nothing needs to be done.
    package var next: String?
    /// The subject of the finding.
    var subject = Subject(.relay)

    /// Returns this finding with a subject.
    func about(_ kind: Kind, of container: JSONValue? = nil, source: String? = nil) -> Finding {
        var finding = self
        finding.subject = Subject(kind, of: container, source: source)
        return finding
    }

    /// The finding as JSON.
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

/// All findings, and the overall verdict.
package struct Diagnosis: Sendable, Hashable {
    package let findings: [Finding]

    /// The worst state of all findings; `unknown` does not count.
    package var state: Finding.State {
        findings.map(\.state).filter { $0 != .unknown }.max() ?? .ok
    }

    /// The overall verdict, as one sentence.
    package var verdict: String {
        let failing = findings.filter { $0.state == .fail }
        let warning = findings.filter { $0.state == .warn }
        let first = (failing + warning).first
        let rest = failing.count + warning.count - 1
        var said = first?.text ?? ""
        if rest > 0 {
            // The sentence continues, so a full stop must go.
            if said.hasSuffix(".") { said.removeLast() }
            said += ", and \(rest) more"
        }
        return switch state {
        case .ok, .unknown: "ok: nothing needs to be done"
        case .warn: "warn: \(said)"
        case .fail: "fail: \(said)"
        }
    }

    /// Returns whether a script should get a failing exit status.
    package func isBad(strict: Bool) -> Bool { strict ? state >= .warn : state == .fail }

    package var json: JSONValue {
        [
            "state": .string(state.rawValue), "verdict": .string(verdict),
            "checks": .array(findings.map(\.json)),
        ]
    }

    /// The text for people: the verdict, then one line for each check, with the next command below
    /// it.
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
