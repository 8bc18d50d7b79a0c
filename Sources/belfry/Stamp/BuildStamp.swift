import CBuildStamp
import Metrics

/// Which Belfry this is: what `deploy/package` wrote into the executable, and "development" where
/// it was only built.
struct BuildStamp: Equatable, CustomStringConvertible {
    static let development = BuildStamp(version: "development", commit: "", isDirty: false)

    /// That of this executable.
    static var current: BuildStamp {
        // The text lies in the executable, and is closed by a zero.
        BuildStamp(text: unsafe String(cString: belfry_build_stamp()))
    }

    let version: String
    /// The whole name of the commit; empty if it is not known.
    let commit: String
    /// Whether files differed from the commit.
    let isDirty: Bool

    init(version: String, commit: String, isDirty: Bool) {
        self.version = version
        self.commit = commit
        self.isDirty = isDirty
    }

    /// Reads version, commit and `dirty`, one in a line; without a version it is a development
    /// build.
    init(text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard let version = lines.first, !version.isEmpty else {
            self = .development
            return
        }
        self.version = version
        commit = lines.count > 1 ? lines[1] : ""
        isDirty = lines.count > 2 && lines[2] == "dirty"
    }

    /// What `--version` prints.
    var description: String {
        guard self != .development else { return "belfry development (not packaged)" }
        let details = [
            commit.isEmpty ? nil : "commit \(commit.prefix(12))", isDirty ? "dirty" : nil,
        ].compactMap(\.self)
        let told = details.isEmpty ? "" : " (\(details.joined(separator: ", ")))"
        return "belfry \(version)\(told)"
    }

    /// Tells the metrics; the value is always 1, the labels say which build it is.
    func record() {
        Gauge(
            label: "belfry_build_info",
            dimensions: [
                ("version", version), ("commit", commit), ("dirty", isDirty ? "true" : "false"),
            ]
        ).record(1)
    }
}
