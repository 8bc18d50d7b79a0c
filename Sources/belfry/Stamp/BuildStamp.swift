import CBuildStamp
import Metrics

/// The version of this executable: what `deploy/package` wrote into it, or "development" if it was
/// not packaged.
struct BuildStamp: Equatable, CustomStringConvertible {
    static let development = BuildStamp(version: "development", commit: "", isDirty: false)

    /// The stamp of this executable.
    static var current: BuildStamp {
        // The text is part of the executable, and ends with a zero byte.
        BuildStamp(text: unsafe String(cString: belfry_build_stamp()))
    }

    let version: String
    /// The full commit hash; empty if it is unknown.
    let commit: String
    /// Whether files differed from the commit.
    let isDirty: Bool

    init(version: String, commit: String, isDirty: Bool) {
        self.version = version
        self.commit = commit
        self.isDirty = isDirty
    }

    /// Parses version, commit and `dirty`, one a line.
    ///
    /// Without a version, it is a development build.
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

    /// The text that `--version` prints.
    var description: String {
        guard self != .development else { return "belfry development (not packaged)" }
        let details = [
            commit.isEmpty ? nil : "commit \(commit.prefix(12))", isDirty ? "dirty" : nil,
        ].compactMap(\.self)
        let told = details.isEmpty ? "" : " (\(details.joined(separator: ", ")))"
        return "belfry \(version)\(told)"
    }

    /// Records the build in the metrics.
    ///
    /// The value is always 1; the labels identify the build.
    func record() {
        Gauge(
            label: "belfry_build_info",
            dimensions: [
                ("version", version), ("commit", commit), ("dirty", isDirty ? "true" : "false"),
            ]
        ).record(1)
    }
}
