import LogShipping
import RelayModel

extension Checkup {
    /// The age below which shipped backups are never too old, because failed attempts are repeated
    /// after a minute.
    private static let shippingAge = Duration.seconds(300)

    /// The finding about the backups.
    var backups: Finding {
        if case .object(let shipped)? = value("backup"), backup == .notNamed {
            return continuous(shipped)
        }
        switch backup {
        case .notNamed:
            return Finding(
                check: "backup", state: .unknown,
                text: "not checked: name the place of the backups with --backups")
        case .missing(let path):
            return Finding(
                check: "backup", state: .fail, text: "there is no backup at \(path)",
                next: backUp(to: "\(path)/belfry.backup"))
        case .unread(let place, let reason):
            return Finding(
                check: "backup", state: .fail, text: "the backups cannot be read: \(reason)",
                next: list(place))
        case .shipped(.none(let reason), let place):
            return Finding(
                check: "backup", state: .fail,
                text: "nothing at \(place) can be restored: \(reason)",
                next: list(place))
        case .shipped(.restorable(let until, let flaw), let place):
            return shipped(until, flaw, at: place)
        case .made(let moment, let path):
            let age = now.duration(since: moment)
            // A date in the future comes from a clock that was ahead. Its negative age would hide
            // that no more backups are made.
            guard age > .seconds(-3600) else {
                return Finding(
                    check: "backup", state: .warn,
                    text: "the newest backup, \(path), is dated \(moment.iso8601Seconds), which "
                        + "is later than now: its age is unknown",
                    next: backUp(to: "\(path).new"))
            }
            let isOld = age > bounds.backupAge
            return Finding(
                check: "backup", state: isOld ? .warn : .ok,
                text: "the newest backup, \(path), is \(Self.words(age)) old",
                next: isOld ? backUp(to: "\(path).new") : nil)
        }
    }

    /// Returns the finding about continuous backups that were read from their place.
    private func shipped(_ until: Timestamp, _ flaw: String?, at place: String) -> Finding {
        let age = now.duration(since: until)
        let wrong = flaw.map { "; \($0)" } ?? ""
        // A time in the future comes from a clock that was ahead. Its negative age would hide that
        // nothing is shipped any more.
        guard age > .seconds(-3600) else {
            return Finding(
                check: "backup", state: .warn,
                text: "\(place) can be restored up to \(until.iso8601Seconds), which is later than "
                    + "now: its age is unknown\(wrong)",
                next: list(place))
        }
        let isOld = age > bounds.backupAge
        return Finding(
            check: "backup", state: isOld || flaw != nil ? .warn : .ok,
            text: "\(place) can be restored up to \(Self.words(age)) ago\(wrong)",
            next: flaw != nil ? list(place) : isOld ? "belfry overview\(self.place)" : nil)
    }

    private func list(_ place: String) -> String {
        "belfry backups list \(Self.quoted(place))\(config)"
    }

    private func backUp(to file: String) -> String {
        guard !isOnServer else {
            return "use pg_basebackup or the provider's own backups (docs/postgresql-engine.md)"
        }
        guard !isElsewhere else {
            return
                "on the relay's machine: belfry backup FILE --database STORE; then copy FILE to "
                + "\(Self.quoted(file))"
        }
        return "belfry backup \(Self.quoted(file)) --database \(Self.quoted(database))"
    }

    /// Returns the finding about the continuous backup as the relay reports it.
    func continuous(_ backup: JSONObject) -> Finding {
        let place = backup.words("place")
        let failure = backup["failure"].map { $0.words(["reason"]) }
        guard let until = Timestamp(iso8601: backup.words("shippedUntil")) else {
            return Finding(
                check: "backup", state: failure == nil ? .warn : .fail,
                text: failure.map { "nothing is shipped to \(place): \($0)" }
                    ?? "the first copy is being shipped to \(place)",
                next: failure == nil ? nil : "belfry overview\(self.place)")
        }
        let age = now.duration(since: until)
        // A time in the future comes from a clock that was ahead. Its negative age would hide that
        // nothing is shipped any more.
        guard age > .seconds(-3600) else {
            return Finding(
                check: "backup", state: .warn,
                text: "\(place) has everything up to \(until.iso8601Seconds), which is later than "
                    + "now: its age is unknown" + (failure.map { "; \($0)" } ?? ""),
                next: "belfry overview\(self.place)")
        }
        let words = "\(place) has everything up to \(Self.words(age)) ago"
        let interval = Duration.seconds(overview.count(["backup", "intervalSeconds"]))
        let isOld = age > max(Self.shippingAge, interval * 3)
        let isVeryOld = age > bounds.backupAge
        let state: Finding.State = isVeryOld ? .fail : isOld ? .warn : .ok
        return Finding(
            check: "backup", state: state,
            text: words + (failure.map { "; \($0)" } ?? ""),
            next: state == .ok ? nil : "belfry overview\(self.place)")
    }
}

private extension JSONObject {
    func words(_ name: String) -> String {
        if case .string(let text)? = self[name] { text } else { "" }
    }
}
