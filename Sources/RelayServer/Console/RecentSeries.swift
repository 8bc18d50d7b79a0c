import RelayModel
import Synchronization

/// The measurements of this process's last hour, for plots.
///
/// They are sampled from counters that the walk keeps anyway. A restart begins anew, and a reader
/// that continues from before it is told so.
///
/// Concurrency: a lock around a value.
final class RecentSeries: Sendable {
    /// The step and the number of rows; five seconds are less than one pixel of a small plot of an
    /// hour.
    struct Settings: Sendable, Hashable {
        var step = Duration.seconds(5)
        var rows = 720

        var span: Duration { step * rows }
    }

    /// An answer to a reader.
    struct Answer: Sendable {
        let rows: [SeriesRing.Row]
        /// The place from which the reader continues.
        let place: String
        /// Whether the reader's place belongs to an earlier start of the relay.
        let isRestarted: Bool
    }

    let settings: Settings
    private let ring: Mutex<SeriesRing>
    private let stream: String

    /// Creates an empty series.
    init(_ settings: Settings = Settings(), identifiers: RandomIdentifiers) {
        self.settings = settings
        stream = identifiers.digits(bytes: 8)
        ring = Mutex(SeriesRing(most: settings.rows))
    }

    /// Records a reading at the end of a step of the given duration.
    func take(_ reading: SeriesReading, at now: Timestamp, after step: Duration) {
        ring.withLock { $0.take(reading, at: now, after: step / .seconds(1)) }
    }

    /// Records a row at each step of `clock`, until the task is cancelled.
    ///
    /// If the store cannot be read at one step, the next successful row covers the longer time. A
    /// failure ends nothing, because plots are not essential.
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

    /// Returns the rows after a place; all rows if `text` is `nil`.
    ///
    /// - Throws: 400 if `text` is not a place.
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
                "after: \"\(text.shortened)\" is not valid; take the value of \"after\" from an "
                    + "earlier answer")
        }
        return (String(parts[0]), number)
    }
}
