import ChangeSources
import RelayModel
import Storage

/// Decodes webhooks.
///
/// Long ones are decoded one at a time, by turns of their containers, on a thread with a lower
/// priority than the other work.
struct WebhookDecoding: Sendable {
    let intake: ChangeIntake
    /// The queue in which long webhooks wait to be decoded.
    let line: ReaderLine
    /// The thread that decodes long webhooks.
    let thread: LongWorkThread

    /// The number of bytes above which a webhook is long: decoding it takes some milliseconds.
    private static let longWebhook = 64 * 1024

    /// Decodes a webhook whose changes have about `bytes` bytes with the closure `read`.
    func decode(
        _ bytes: Int, of container: ContainerKey,
        _ read: @escaping @Sendable () throws -> DecodedBatch
    ) async throws -> (DecodedBatch, ChangeIntake.Prepared?) {
        guard bytes > Self.longWebhook else { return (try read(), nil) }
        return try await line.turn(of: container) {
            // The schema is read before the switch to the thread. With its low priority, that
            // thread might be suspended while it holds a lock of the store.
            let schema = try await intake.schema(of: container)
            return try await withTaskExecutorPreference(thread) {
                try await decodeLong(schema, read)
            }
        }
    }

    /// Decodes a long webhook on the preferred executor, and prepares it for the log, which takes
    /// as long.
    @concurrent private func decodeLong(
        _ schema: ContainerSchema, _ read: @escaping @Sendable () throws -> DecodedBatch
    ) async throws -> (DecodedBatch, ChangeIntake.Prepared?) {
        let batch = try read()
        return (batch, try intake.prepare(batch, by: schema))
    }
}
