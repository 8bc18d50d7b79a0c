import FoundationEssentials
import Glibc
import Storage

/// The administrative surface of a running `belfry dev`.
///
/// Other commands of the same user find it automatically if nothing else names a relay.
struct DevAddress: Codable, Sendable {
    /// The URL of the administrative surface, without a slash at the end.
    let url: String
    /// The token of the administrative surface.
    let adminToken: String
    /// The process ID.
    ///
    /// The process may have been killed.
    let process: Int32
    /// The container, in the environment `development`.
    var container: String?
    /// The URL of the change source.
    var sourceURL: String?
    /// The token of the change source.
    var sourceToken: String?
    /// The absolute path of the store.
    var store: String?
    /// Sandboxes that were started earlier and still ran then, the latest first.
    ///
    /// They are found again when this one ends.
    var others: [DevAddress]?

    /// Returns the file with the address; `nil` without a home directory.
    ///
    /// It is `belfry/dev.json` in `XDG_STATE_HOME`, by default `~/.local/state` (XDG Base Directory
    /// Specification 0.8).
    private static func file(_ environment: [String: String]) -> URL? {
        let home = environment["HOME"].flatMap { $0.isEmpty ? nil : "\($0)/.local/state" }
        guard
            let state = environment["XDG_STATE_HOME"].flatMap({ $0.isEmpty ? nil : $0 }) ?? home
        else { return nil }
        return URL(filePath: state).appending(path: "belfry/dev.json")
    }

    /// Announces this sandbox to other commands, which find the one that was started last.
    ///
    /// - Returns: Whether the address could be written.
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

    /// Withdraws this process.
    ///
    /// Then the latest sandbox that still runs is found instead, unless another one was started
    /// since.
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

    /// This sandbox and those that were started earlier, as far as they still run.
    private var running: [DevAddress] {
        var alone = self
        alone.others = nil
        return ([alone] + (others ?? [])).filter { kill($0.process, 0) == 0 }
    }

    /// Returns the latest running sandbox, if there is one.
    static func find(_ environment: [String: String]) -> DevAddress? {
        guard let file = file(environment),
            let address = try? PrivateFile.read(DevAddress.self, from: file)
        else { return nil }
        return address.running.first
    }

    /// Returns the store that `path` means: that of a running sandbox if the usual path is given
    /// and does not exist.
    static func store(for path: String, _ environment: [String: String]) -> String {
        let files = FileManager.default
        guard path == StoreSettings.usualPath, !files.fileExists(atPath: path),
            let store = find(environment)?.store, files.fileExists(atPath: store)
        else { return path }
        try? StandardStreams.write(Array("(the store of belfry dev, \(store))\n".utf8), .error)
        return store
    }
}
