import FoundationEssentials
import Glibc
import Storage

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
    /// Its store, by its whole path.
    var store: String?
    /// Those that were started before and were running then, the last one first: they are found
    /// again when this one ends.
    var others: [DevAddress]?

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
        var announced = self
        announced.others = (try? PrivateFile.read(DevAddress.self, from: file))?.running
        do {
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try PrivateFile.write(announced, to: file)
            return true
        } catch {
            return false
        }
    }

    /// This process is found no more; another one that was started since is, or else the last one
    /// that runs still.
    static func withdraw(_ environment: [String: String]) {
        guard let file = file(environment),
            let announced = try? PrivateFile.read(DevAddress.self, from: file),
            announced.process == getpid()
        else { return }
        let others = announced.running.filter { $0.process != getpid() }
        guard var next = others.first else {
            try? FileManager.default.removeItem(at: file)
            return
        }
        next.others = Array(others.dropFirst())
        try? PrivateFile.write(next, to: file)
    }

    /// This one and those that were started before, as far as they run.
    private var running: [DevAddress] {
        var alone = self
        alone.others = nil
        return ([alone] + (others ?? [])).filter { kill($0.process, 0) == 0 }
    }

    /// The one that runs, if any does.
    static func find(_ environment: [String: String]) -> DevAddress? {
        guard let file = file(environment),
            let address = try? PrivateFile.read(DevAddress.self, from: file)
        else { return nil }
        return address.running.first
    }

    /// The store that is meant by `path`: that of a running one, where the usual one is meant and
    /// is not there.
    static func store(for path: String, _ environment: [String: String]) -> String {
        let files = FileManager.default
        guard path == StoreSettings.usualPath, !files.fileExists(atPath: path),
            let store = find(environment)?.store, files.fileExists(atPath: store)
        else { return path }
        try? StandardStreams.write(Array("(the store of belfry dev, \(store))\n".utf8), .error)
        return store
    }
}
