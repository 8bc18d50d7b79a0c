package import RelayModel
import Synchronization

/// What the phones of a sandbox got, the newest last; there is none where pushes go to real ones.
///
/// Concurrency: a lock around a list, which has an end by number and by bytes.
package final class SandboxPushes: Sendable {
    /// One push that the made-up gateway accepted.
    package struct Push: Sendable, Hashable {
        let at: Timestamp
        let token: String
        let deliveryID: String
        let headers: [String: String]
        let payload: [UInt8]

        /// Describes a push; `headers` are those of its request, by their names.
        package init(
            at: Timestamp, token: String, deliveryID: String, headers: [String: String],
            payload: [UInt8]
        ) {
            self.at = at
            self.token = token
            self.deliveryID = deliveryID
            self.headers = headers
            self.payload = payload
        }
    }

    /// What whoever asks is told.
    struct Page: Sendable {
        var pushes: [(number: UInt64, push: Push)]
        /// Where to go on.
        let place: String
        /// Whether the place was of another start.
        let isRestarted: Bool
    }

    private struct State {
        var pushes: [Push] = []
        var bytes = 0
        /// The number of the first that is kept, from 1.
        var first: UInt64 = 1
    }

    private static let most = 500
    private static let mostBytes = 2 * 1_048_576
    /// How often one looks whether there is something new.
    private static let pause = Duration.milliseconds(200)

    private let state = Mutex(State())
    private let stream: String
    private let clock: any Clock<Duration>

    /// Begins without a push.
    package init(clock: any Clock<Duration>, randomBytes: (Int) -> [UInt8]) {
        self.clock = clock
        stream = Hexadecimal.encode(randomBytes(8))
    }

    /// Keeps a push.
    package func note(_ push: Push) {
        state.withLock { state in
            state.pushes.append(push)
            state.bytes += push.payload.count
            while state.pushes.count > Self.most || state.bytes > Self.mostBytes,
                state.pushes.count > 1
            {
                state.bytes -= state.pushes.removeFirst().payload.count
                state.first += 1
            }
        }
    }

    /// The pushes after a place, as soon as there are any, for `hold` at most; all that are
    /// kept if there is no place.
    func next(after text: String?, hold: Duration) async throws -> Page {
        let began = clock.measureStart()
        var page = page(after: text)
        // One who tries things out looks here; a queue of those who wait would be too much.
        while text != nil, page.pushes.isEmpty, !page.isRestarted, began.elapsed() < hold {
            try await clock.sleep(for: Self.pause)
            page = self.page(after: text)
        }
        return page
    }

    private func page(after text: String?) -> Page {
        let parts = (text ?? "").split(separator: ".").map(String.init)
        let isSame = parts.count == 2 && parts[0] == stream
        let number = isSame ? UInt64(parts[1]) ?? 0 : 0
        return state.withLock { state in
            let pushes = state.pushes.enumerated().map { index, push in
                (number: state.first + UInt64(index), push: push)
            }
            return Page(
                pushes: pushes.filter { $0.number > number },
                place: "\(stream).\(state.first + UInt64(pushes.count) - 1)",
                isRestarted: text != nil && !isSame)
        }
    }
}
