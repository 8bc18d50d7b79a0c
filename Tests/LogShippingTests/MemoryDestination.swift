import LogShipping
import Synchronization

/// A destination in memory, which fails when the test says so.
final class MemoryDestination: BackupDestination {
    private struct State {
        var objects: [String: [UInt8]] = [:]
        var failure: DestinationFailure?
        /// The next write of a name that contains this text succeeds, but reports a failure.
        var unanswered: String?
    }

    private let state = Mutex(State())
    /// Called before each write with its name.
    private let beforePut: @Sendable (String) async -> Void

    init(beforePut: @escaping @Sendable (String) async -> Void = { _ in }) {
        self.beforePut = beforePut
    }

    var place: String { "memory:" }

    /// All objects, by name.
    var objects: [String: [UInt8]] { state.withLock { $0.objects } }

    /// The names of the segments, in ascending order.
    var segments: [String] { objects.keys.filter { $0.contains("/log-") }.sorted() }

    /// Makes every operation fail with `failure` from now on, or succeed again if it is `nil`.
    func fail(_ failure: DestinationFailure?) { state.withLock { $0.failure = failure } }

    /// Writes the next object whose name contains `text`, but fails as if the answer was lost.
    func loseAnswer(of text: String) { state.withLock { $0.unanswered = text } }

    /// Removes all objects except those of this name.
    func empty(except name: String? = nil) {
        state.withLock { $0.objects = $0.objects.filter { $0.key == name } }
    }

    /// Has these objects and no others from now on.
    func hold(_ objects: [String: [UInt8]]) { state.withLock { $0.objects = objects } }

    func change(_ name: String, _ body: (inout [UInt8]) -> Void) {
        state.withLock { state in
            if var bytes = state.objects[name] {
                body(&bytes)
                state.objects[name] = bytes
            }
        }
    }

    func put(_ name: String, _ bytes: [UInt8]) async throws(DestinationFailure) {
        await beforePut(name)
        let failure = state.withLock { state -> DestinationFailure? in
            if let failure = state.failure { return failure }
            if let there = state.objects[name], there != bytes {
                return DestinationFailure(.taken, "\(name) exists already, with other contents")
            }
            state.objects[name] = bytes
            guard let text = state.unanswered, name.contains(text) else { return nil }
            state.unanswered = nil
            return DestinationFailure(.away, "the answer was lost")
        }
        if let failure { throw failure }
    }

    func get(_ name: String, atMost limit: Int) async throws(DestinationFailure) -> [UInt8]? {
        try check()
        return state.withLock { $0.objects[name] }
    }

    func names(below prefix: String) async throws(DestinationFailure) -> [String] {
        try check()
        return state.withLock { $0.objects.keys.filter { $0.hasPrefix(prefix) } }
    }

    func remove(_ name: String) async throws(DestinationFailure) {
        try check()
        state.withLock { $0.objects[name] = nil }
    }

    func close() async {}

    private func check() throws(DestinationFailure) {
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }
}
