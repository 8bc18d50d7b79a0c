import Storage

extension Retention {
    /// Returns how long the log is kept, as the end of a sentence; `oldest` is the age of its
    /// oldest entry, if known.
    func logIsKept(oldest: Duration? = nil) -> String {
        Self.kept(
            "the log is", oldest: oldest, (logAge, "retention.logHours"),
            (logBytes, "retention.logMegabytes"))
    }

    /// Returns how long receipts are kept, as the end of a sentence; `oldest` is the age of the
    /// oldest change that has receipts, if known.
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
        // If the oldest entry has nearly the maximum age, the age limit removed the rest. If it is
        // younger, the size limit did, or there was nothing for a long time.
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
