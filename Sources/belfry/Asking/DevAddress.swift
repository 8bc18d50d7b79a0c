import Foundation

/// Where a running `belfry dev` has its administrative side, for the other commands of the same
/// user: they find it by themselves where nothing else tells them of a relay.
struct DevAddress: Codable, Sendable {
    /// The administrative side, without a slash at the end.
    let url: String
    /// Its token.
    let adminToken: String
    /// The process, which may have been killed.
    let process: Int32
    /// Its container in the environment development.
    var container: String?
    /// Where its change source is posted to.
    var sourceURL: String?
    /// What the change source proves itself by.
    var sourceToken: String?

    /// Where it stands; `nil` without a home.
    ///
    /// `belfry/dev.json` below `XDG_STATE_HOME`, which is `~/.local/state` as a rule (XDG Base
    /// Directory Specification 0.8).
    private static func file(_ environment: [String: String]) -> URL? {
        let home = environment["HOME"].flatMap { $0.isEmpty ? nil : "\($0)/.local/state" }
        guard
            let state = environment["XDG_STATE_HOME"].flatMap({ $0.isEmpty ? nil : $0 }) ?? home
        else { return nil }
        return URL(filePath: state).appending(path: "belfry/dev.json")
    }

    /// Lets the other commands find it; the last one that was started is found.
    ///
    /// - Returns: Whether there was a place for it.
    func announce(_ environment: [String: String]) -> Bool {
        guard let file = Self.file(environment) else { return false }
        do {
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try PrivateFile.write(self, to: file)
            return true
        } catch {
            return false
        }
    }

    /// This process is found no more; another one that was started since is.
    static func withdraw(_ environment: [String: String]) {
        guard let file = file(environment),
            (try? PrivateFile.read(DevAddress.self, from: file))?.process == getpid()
        else { return }
        try? FileManager.default.removeItem(at: file)
    }

    /// The one that runs, if any does.
    static func find(_ environment: [String: String]) -> DevAddress? {
        guard let file = file(environment),
            let address = try? PrivateFile.read(DevAddress.self, from: file),
            kill(address.process, 0) == 0
        else { return nil }
        return address
    }
}
