import RelayModel

extension Checkup {
    /// Returns whether a container can send, judged by the gateway's last answer.
    func sending(_ container: JSONValue) -> Finding {
        let check = "gateway \(name(container))"
        if let halt = halt(of: container) {
            let words = halt.words(["reason"])
            return Finding(
                check: check, state: .fail,
                text: "pushes of \(name(container)) wait since \(halt.words(["since"])): \(words)",
                next: "belfry containers show \(flags(container))")
        }
        let at = container.words(["gateway", "last", "at"])
        let reason = container.words(["gateway", "last", "reason"])
        let meaning = container.words(["gateway", "last", "meaning"])
        switch container.words(["canSend"]) {
        case "yes":
            // A 5xx status is a fault of the gateway and not of a push, although each push gets its
            // own answer.
            guard container.count(["gateway", "last", "status"]) < 500 else {
                return Finding(
                    check: check, state: .warn,
                    text:
                        "the gateway failed to accept a push of \(name(container)) at \(at), which "
                        + "will be tried again: \(reason)"
                        + (meaning.isEmpty ? "" : " (\(meaning))"),
                    next: "belfry deliveries retries \(flags(container))")
            }
            return Finding(check: check, state: .ok, text: "last answer: \(reason) at \(at)")
        case "no":
            return Finding(
                check: check, state: .fail,
                text: "\(name(container)) could not send at \(at): \(reason)"
                    + (meaning.isEmpty ? "" : " (\(meaning))"),
                next: "belfry containers show \(flags(container))")
        case "untried":
            return Finding(
                check: check, state: .unknown, text: "nothing was sent since the relay was started")
        default:
            return Finding(
                check: check, state: .unknown,
                text: "no credential: only devices of web couriers get notifications")
        }
    }

    /// Returns the remaining validity of the credential.
    func credential(_ container: JSONValue) -> Finding {
        let check = "credential \(name(container))"
        switch container.words(["credential", "kind"]) {
        case "key": return Finding(check: check, state: .ok, text: "a key, which does not expire")
        case "certificate": break
        default: return Finding(check: check, state: .unknown, text: "none")
        }
        guard let end = Timestamp(iso8601: container.words(["credential", "expiresAt"])) else {
            return Finding(
                check: check, state: .unknown, text: "a certificate whose expiry date is unknown")
        }
        let left = end.duration(since: now)
        let next = "belfry containers set \(flags(container)) --certificate-file FILE.p12"
        if left <= .zero {
            return Finding(
                check: check, state: .fail,
                text: "the certificate of \(name(container)) expired at \(end.iso8601)",
                next: next)
        }
        let isShort = left < bounds.validity
        return Finding(
            check: check, state: isShort ? .warn : .ok,
            text: "the certificate of \(name(container)) is valid for another \(Self.words(left))",
            next: isShort ? next : nil)
    }

    /// Returns a finding if no user can sign in, which is correct if only servers call.
    func signIn(_ container: JSONValue) -> [Finding] {
        guard container.member(["canSignIn"]) == false else { return [] }
        return [
            Finding(
                check: "sign-in \(name(container))", state: .unknown,
                text:
                    "user tokens are not accepted: only servers with an access key can act for "
                    + "users",
                next: "belfry containers set \(flags(container)) --key-set-file jwks.json"
            ).about(.relay, of: container)
        ]
    }

    /// Returns a finding for each source: whether it posts, and whether its webhooks are accepted.
    func sources(_ container: JSONValue) -> [Finding] {
        guard
            case .array(let sources)? = container.member(["webhooks", "sources"])
        else { return [] }
        guard !sources.isEmpty else {
            return [
                Finding(
                    check: "source", state: .unknown,
                    text: "there is no source: nothing can post changes",
                    next: "belfry sources set NAME --preset belfry \(flags(container))"
                ).about(.source, of: container)
            ]
        }
        return sources.map { source in
            self.source(source, of: container)
                .about(.source, of: container, source: source.words(["name"]))
        }
    }

    private func source(_ source: JSONValue, of container: JSONValue) -> Finding {
        let name = source.words(["name"])
        let check = "source \(name)"
        if let following = source.member(["following"]) {
            return self.following(following, check, name, of: container)
        }
        let accepted = Timestamp(iso8601: source.words(["lastAccepted"]))
        if let refused = Timestamp(iso8601: source.words(["lastRefused"])),
            refused > accepted ?? refused.advanced(by: .seconds(-1))
        {
            return Finding(
                check: check, state: accepted == nil ? .fail : .warn,
                text: "the last webhook of \(name) was refused at \(refused.iso8601): "
                    + source.words(["lastReason"]),
                next: "belfry sources refused \(flags(container))")
        }
        if let refusals = refusals(source, check, name, of: container) { return refusals }
        // Nothing is known of the time before the start, so silence is counted from the start.
        let since = [
            accepted, Timestamp(iso8601: source.words(["savedAt"])),
            Timestamp(iso8601: text(["startedAt"])),
        ].compactMap { $0 }.max()
        guard isRunning, let since else {
            return Finding(check: check, state: .unknown, text: "no relay runs")
        }
        // Both times must be from the relay's clock.
        let silence = (Timestamp(iso8601: text(["now"])) ?? now).duration(since: since)
        if silence > bounds.silence {
            return Finding(
                check: check, state: .warn,
                text: "\(name) has posted nothing for \(Self.words(silence))",
                next: "belfry sources show \(name) \(flags(container))")
        }
        guard let accepted else {
            return Finding(check: check, state: .unknown, text: "has posted nothing yet")
        }
        if let older = older(source, check, name, of: container) { return older }
        return Finding(check: check, state: .ok, text: "last webhook at \(accepted.iso8601)")
    }

    /// Returns a finding about a source if many of its webhooks are refused while others are
    /// accepted.
    ///
    /// A common cause is one of several senders with an outdated secret. The finding disappears an
    /// hour after the last refusal.
    private func refusals(
        _ source: JSONValue, _ check: String, _ name: String, of container: JSONValue
    ) -> Finding? {
        let refused = source.count(["refused"])
        let all = refused &+ source.count(["accepted"])
        guard refused >= 10, Double(refused) >= Double(all) / 10,
            let last = Timestamp(iso8601: source.words(["lastRefused"])),
            (Timestamp(iso8601: text(["now"])) ?? now).duration(since: last) < .seconds(3600)
        else { return nil }
        return Finding(
            check: check, state: .warn,
            text:
                "\(refused) of \(all) webhooks of \(name) were refused since the relay was "
                + "started, the last at \(last.iso8601): "
                + source.words(["lastReason"]),
            next: "belfry sources refused \(flags(container))")
    }

    /// Returns a finding about a source if many of its changes fire nothing because the relay has
    /// newer versions.
    ///
    /// A few such changes are normal, because a source may repeat late ones.
    private func older(
        _ source: JSONValue, _ check: String, _ name: String, of container: JSONValue
    ) -> Finding? {
        let percent = source.count(["olderPercent"])
        guard source.count(["older"]) >= 10, percent >= 10 else { return nil }
        return Finding(
            check: check, state: .warn,
            text:
                "\(percent) % of the latest changes of \(name) are older than the versions that "
                + "the relay has of their records, and fire nothing: its database was probably "
                + "restored or replaced (mapping.order \"arrival\" ignores its versions)",
            next: "belfry changes list --state stale --source \(name) \(flags(container))")
    }

    /// Returns the finding about a source whose database the relay follows; such a source may be
    /// silent.
    private func following(
        _ following: JSONValue, _ check: String, _ name: String, of container: JSONValue
    ) -> Finding {
        let words = following.words(["sentence"])
        guard isRunning else {
            return Finding(check: check, state: .unknown, text: "no relay runs")
        }
        switch FollowStanding.Verdict(rawValue: following.words(["verdict"])) {
        case .well? where hasBegunLongAgo(following):
            return Finding(
                check: check, state: .warn,
                text:
                    "\(name): connecting since \(following.words(["since"])): check why the "
                    + "database does not answer, or what blocks the creation of the slot",
                next: "belfry sources show \(name) \(flags(container))")
        case .well?:
            return Finding(
                check: check, state: .ok,
                text: "\(name): \(following.words(["state"])) since "
                    + following.words(["since"])
                    + (isRemarkable(following) ? ". \(words)" : ""))
        case .broken?:
            return Finding(
                check: check, state: .fail, text: "\(name): \(words)",
                next: "belfry sources show \(name) \(flags(container))")
        case .waiting?, nil:
            return Finding(
                check: check, state: .warn, text: "\(name): \(words)",
                next: "belfry sources show \(name) \(flags(container))")
        }
    }

    /// Whether the sentence about a healthy follower contains something that the operator should
    /// read.
    private func isRemarkable(_ following: JSONValue) -> Bool {
        // Changes whose authors are unreadable are delivered, but not as intended; a failover would
        // end the following.
        following.count(["authorsUnread"]) > 0 || following.member(["lacksFailover"]) != nil
    }

    /// Whether a follower is still connecting after a long time, although nothing refuses it.
    private func hasBegunLongAgo(_ following: JSONValue) -> Bool {
        guard following.words(["state"]) == "connecting",
            let since = Timestamp(iso8601: following.words(["since"]))
        else { return false }
        return (Timestamp(iso8601: text(["now"])) ?? now).duration(since: since) > .seconds(600)
    }

    /// Returns the finding about dead letters and parked changes, which need the operator.
    func leftovers(_ container: JSONValue) -> Finding {
        let check = "left over \(name(container))"
        let dead = container.count(["deadLetters"])
        let parked = container.count(["parked"])
        guard dead + parked > 0 else {
            return Finding(check: check, state: .ok, text: "no dead letters, no parked changes")
        }
        let words = [(dead, "dead letter"), (parked, "parked change")]
            .filter { $0.0 > 0 }.map { Counted.text($0.0, $0.1) }
        return Finding(
            check: check, state: .warn,
            text: "\(name(container)) has \(words.joined(separator: " and "))",
            next: dead > 0
                ? "belfry deliveries dead-letters \(flags(container))"
                : "belfry changes parked \(flags(container))")
    }

    private func halt(of container: JSONValue) -> JSONValue? {
        guard case .array(let halts)? = value("halts") else { return nil }
        return halts.first { halt in
            ["container", "environment"].allSatisfy { halt.words([$0]) == container.words([$0]) }
        }
    }

    func name(_ container: JSONValue) -> String {
        "\(container.words(["container"]))/\(container.words(["environment"]))"
    }

    func flags(_ container: JSONValue) -> String {
        "-c \(container.words(["container"])) -e \(container.words(["environment"]))\(place)"
    }
}
