import RelayModel

extension Checkup {
    /// Returns a command that reads the store itself, for the machine on which the store is.
    func onStore(_ command: String) -> String {
        isElsewhere ? "on the relay's machine: \(command)" : "\(command)\(store)"
    }

    /// The problems of the store's contents; no other answer of the relay reports them.
    var contents: [Finding] {
        var findings: [Finding] = []
        let difference = overview.count(["difference"])
        if difference != 0 {
            findings.append(
                Finding(
                    check: "accounts", state: .fail,
                    text: "the delivery accounts differ by "
                        + Counted.text(difference, "delivery", "deliveries")
                        + ": some were lost or counted twice",
                    next: onStore("belfry check")))
        }
        let rows = overview.count(["unreadableRows"])
        if rows > 0 {
            findings.append(
                Finding(
                    check: "rows", state: .warn,
                    text: Counted.text(
                        rows, "row of the store cannot be read and is set aside",
                        "rows of the store cannot be read and are set aside"),
                    next: onStore("belfry check")))
        }
        return findings.map { $0.about(.log) }
    }

    /// Returns the finding about changes that were set aside.
    ///
    /// It names the newest one, because a check of the store finds nothing wrong with such changes.
    func setAside(_ count: Int64) -> Finding {
        let words = Counted.text(
            count, "change was set aside and fires nothing",
            "changes were set aside and fire nothing")
        guard let newest = value("setAside"), case .object = newest else {
            return Finding(
                check: "log", state: .warn, text: words, next: "belfry overview\(place)")
        }
        let position = newest.words(["position"])
        return Finding(
            check: "log", state: .warn,
            text: "\(words); the newest is at position \(position) of \(name(newest)): "
                + newest.words(["reason"]),
            next: "belfry changes show \(position) \(flags(newest))")
    }
}
