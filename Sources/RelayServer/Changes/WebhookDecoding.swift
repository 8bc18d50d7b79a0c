import ChangeSources
import RelayModel
import Storage

/// Takes webhooks apart: long ones one at a time, by turns of their containers, on a thread that
/// gives way to what others ask meanwhile.
struct WebhookDecoding: Sendable {
    let intake: ChangeIntake
    /// Where long webhooks wait until they are decoded.
    let line: ReaderLine
    /// Decodes them.
    let thread: LongWorkThread

    /// The bytes from which on a webhook takes a processor for a while, some milliseconds.
    private static let longWebhook = 64 * 1024

    /// Takes so many bytes apart, as `read` does it.
    func decode(
        _ bytes: Int, of container: ContainerKey,
        _ read: @escaping @Sendable () throws -> DecodedBatch
    ) async throws -> (DecodedBatch, ChangeIntake.Prepared?) {
        guard bytes > Self.longWebhook else { return (try read(), nil) }
        return try await line.turn(of: container) {
            // Nothing is asked of the store on that thread, which may stand still with a lock.
            let schema = try await intake.schema(of: container)
            return try await withTaskExecutorPreference(thread) {
                try await decodeLong(schema, read)
            }
        }
    }

    /// Decodes a webhook and prepares it for the log, which takes as long, where the task prefers.
    @concurrent private func decodeLong(
        _ schema: ContainerSchema, _ read: @escaping @Sendable () throws -> DecodedBatch
    ) async throws -> (DecodedBatch, ChangeIntake.Prepared?) {
        let batch = try read()
        return (batch, try intake.prepare(batch, by: schema))
    }
}
