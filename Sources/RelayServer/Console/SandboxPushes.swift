package import RelayModel
import Synchronization

/// The pushes that the phones of a sandbox received, the newest last; outside of a sandbox there is
/// no such object.
///
/// Concurrency: a lock around a list, which is bounded by number and by bytes.
package final class SandboxPushes: Sendable {
    /// A push that the simulated gateway accepted.
    package struct Push: Sendable, Hashable {
        let at: Timestamp
        let token: String
        let deliveryID: String
        let headers: [String: String]
        let payload: [UInt8]

        /// Creates a push; `headers` are those of its request, by name.
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

    /// An answer to a reader.
    struct Page: Sendable {
        var pushes: [(number: UInt64, push: Push)]
        /// The place from which the reader continues.
        let place: String
        /// Whether the reader's place belongs to an earlier start of the relay.
        let isRestarted: Bool
    }

    private struct State {
        var pushes: [Push] = []
        var bytes = 0
        /// The number of the oldest push that is kept, from 1.
        var first: UInt64 = 1
    }

    private static let most = 500
    private static let mostBytes = 2 * 1_048_576
    /// The interval at which a waiting reader checks for new pushes.
    private static let pause = Duration.milliseconds(200)

    private let state = Mutex(State())
    private let stream: String
    private let clock: any Clock<Duration>

    /// Creates an empty list.
    package init(clock: any Clock<Duration>, randomBytes: (Int) -> [UInt8]) {
        self.clock = clock
        stream = Hexadecimal.encode(randomBytes(8))
    }

    /// Adds a push.
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

    /// Returns the pushes after a place, waiting for the first one up to `hold`; all pushes if
    /// there is no place.
    func next(after text: String?, hold: Duration) async throws -> Page {
        let began = clock.measureStart()
        var page = page(after: text)
        // Only a developer who tries things out reads here, so polling is simpler than a queue of
        // waiting readers.
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
