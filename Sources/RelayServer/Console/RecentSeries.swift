import RelayModel
import Synchronization

/// How the last hour of this process went, for plots.
///
/// It is sampled beside the walk, which counts what it counts anyway. A restart begins anew, and
/// whoever asks on is told. Concurrency: a lock around a value.
final class RecentSeries: Sendable {
    /// What can be set: five seconds are less than a point of a small plot of an hour.
    struct Settings: Sendable, Hashable {
        var step = Duration.seconds(5)
        var rows = 720

        var span: Duration { step * rows }
    }

    /// What whoever asks is told.
    struct Answer: Sendable {
        let rows: [SeriesRing.Row]
        /// Where to go on.
        let place: String
        /// Whether the place was of another start.
        let isRestarted: Bool
    }

    let settings: Settings
    private let ring: Mutex<SeriesRing>
    private let stream: String

    /// Begins with nothing.
    init(_ settings: Settings = Settings(), identifiers: RandomIdentifiers) {
        self.settings = settings
        stream = identifiers.digits(bytes: 8)
        ring = Mutex(SeriesRing(most: settings.rows))
    }

    /// Takes what was read at the end of a step that took so long.
    func take(_ reading: SeriesReading, at now: Timestamp, after step: Duration) {
        ring.withLock { $0.take(reading, at: now, after: step / .seconds(1)) }
    }

    /// Takes a row at each step of `clock`, until the task is cancelled.
    ///
    /// What the store does not tell now, it tells at a later step, which is as much longer: plots
    /// end nothing.
    func sample(
        by clock: any Clock<Duration>, now: @Sendable () -> Timestamp,
        _ read: @Sendable () async throws -> SeriesReading
    ) async throws {
        var last: Stopwatch?
        while true {
            let (step, began) = (last?.elapsed() ?? .zero, clock.measureStart())
            if let reading = try? await read() {
                take(reading, at: now(), after: step)
                last = began
            }
            try await clock.sleep(for: settings.step)
        }
    }

    /// The rows after a place; all that are kept if there is none.
    ///
    /// - Throws: 400 if the place is none.
    func answer(after text: String?) throws(APIError) -> Answer {
        let place = try text.map(Self.place)
        let isSame = place?.stream == stream
        return ring.withLock { ring in
            Answer(
                rows: Array(ring.rows(after: isSame ? place?.number ?? 0 : 0)),
                place: "\(stream).\(ring.newest)", isRestarted: place != nil && !isSame)
        }
    }

    private static func place(
        _ text: String
    ) throws(APIError) -> (stream: String, number: UInt64) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let number = UInt64(parts[1]) else {
            throw APIError(
                .badRequest,
                "after: \"\(text.shortened)\" is not what an answer had as \"after\"")
        }
        return (String(parts[0]), number)
    }
}
