import Storage

extension Retention {
    /// How long the log is kept, as the end of a sentence; `oldest` is the age of what it has, if
    /// that is known.
    func logIsKept(oldest: Duration? = nil) -> String {
        Self.kept(
            "the log is", oldest: oldest, (logAge, "retention.logHours"),
            (logBytes, "retention.logMegabytes"))
    }

    /// How long receipts are kept, as the end of a sentence; `oldest` is the age of the change from
    /// which on there are some, if that is known.
    func receiptsAreKept(oldest: Duration? = nil) -> String {
        Self.kept(
            "receipts are", oldest: oldest, (receiptAge, "retention.receiptHours"),
            (receiptBytes, "retention.receiptMegabytes"))
    }

    private static func kept(
        _ subject: String, oldest: Duration?, _ age: (bound: Duration?, key: String),
        _ size: (bound: Int?, key: String)
    ) -> String {
        var bounds: [String] = []
        // What lies on is about as old as it may be where age took the rest; where it is younger,
        // size did, or there was nothing for long.
        let isAtItsAge =
            if let bound = age.bound, let oldest { oldest * 10 >= bound * 9 } else { false }
        if let bound = size.bound, !isAtItsAge {
            bounds.append("up to \(bound >> 20) MB (\(size.key))")
        }
        if let bound = age.bound {
            bounds.append("for \(bound.components.seconds / 3600) h (\(age.key))")
        }
        return bounds.isEmpty ? "" : ", as \(subject) kept \(bounds.joined(separator: " and "))"
    }
}
