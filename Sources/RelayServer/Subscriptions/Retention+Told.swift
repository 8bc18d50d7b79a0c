import Storage

extension Retention {
    /// How long the log is kept, as the end of a sentence.
    var logIsKept: String {
        Self.kept(logAge, "retention.logHours")
            ?? logBytes.map { ", and is kept up to \($0 >> 20) MB (retention.logMegabytes)" } ?? ""
    }

    static func kept(_ age: Duration?, _ key: String) -> String? {
        age.map { ", and is kept for \($0.components.seconds / 3600) h (\(key))" }
    }
}
