import RelayModel

extension Checkup {
    /// How old what is shipped may be at the least: attempts after failures are a minute apart.
    private static let shippingAge = Duration.seconds(300)

    /// What the relay says of its continuous backup.
    func continuous(_ backup: JSONObject) -> Finding {
        let place = backup.words("place")
        let failure = backup["failure"].map { $0.words(["reason"]) }
        guard let until = Timestamp(iso8601: backup.words("shippedUntil")) else {
            return Finding(
                check: "backup", state: failure == nil ? .warn : .fail,
                text: failure.map { "nothing is shipped to \(place): \($0)" }
                    ?? "the first copy is on its way to \(place)",
                next: failure == nil ? nil : "belfry overview\(self.place)")
        }
        let age = now.duration(since: until)
        // Of a clock that was ahead: it would hide that nothing is shipped any more.
        guard age > .seconds(-3600) else {
            return Finding(
                check: "backup", state: .warn,
                text: "\(place) has everything up to \(until.iso8601Seconds), which is later than "
                    + "now: nobody knows how old that is" + (failure.map { "; \($0)" } ?? ""),
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
