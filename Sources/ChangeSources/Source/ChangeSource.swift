package import RelayModel

/// A configured webhook sender: how it authenticates itself, what its bodies mean, and what happens
/// to unreadable ones.
///
/// This room is pure: nothing in it suspends, logs or reads a clock. The server first verifies the
/// raw bytes (``verify(_:)``) and then decodes them (``decode(_:)``).
package struct ChangeSource: Sendable, Hashable {
    /// The name, which is part of the webhook's URL.
    package var name: SourceName
    /// The shape of the bodies.
    package var preset: SourcePreset
    /// How a webhook proves that it comes from this source.
    package var verification: SourceVerification
    /// The rules by which the source's tables and columns become record types, record names and so
    /// on.
    package var mapping: SourceMapping
    /// What happens to a change that cannot be mapped.
    package var onUnmappable: UnmappablePolicy
    /// The maximum size of a body, from 1 byte to ``Limits/maximumWebhookBytes``.
    package var maximumBodyBytes: Int
    /// The window within which two equal changes of a record without any identifier count as one,
    /// if no other change came in between; zero for never.
    ///
    /// A longer window would swallow a repeated change if the sender never reported that it was
    /// reverted.
    package var contentWindow: Duration
    /// The database that the relay follows for this source, if there is one.
    package var follow: FollowDefinition?

    /// Creates a source with the defaults of its preset.
    ///
    /// The other properties can be set afterwards.
    package init(
        name: SourceName, preset: SourcePreset, verification: SourceVerification,
        mapping: SourceMapping = SourceMapping()
    ) {
        self.name = name
        self.preset = preset
        self.verification = verification
        self.mapping = mapping
        onUnmappable = preset.defaultPolicy
        maximumBodyBytes = preset.defaultBodyBytes
        contentWindow = preset.defaultContentWindow
    }

    /// Returns about how many bytes the changes in a body have together.
    ///
    /// Directus sends one payload for up to a thousand items, so that the number may grow with the
    /// square: a body of 2 kB may have 250 keys and a payload of a kilobyte.
    package func decodedBytes(of body: [UInt8]) -> Int {
        // What is longer counts as long by its size alone, and is not looked through first.
        guard preset == .directus, body.count <= 64 * 1024 else { return body.count }
        return DirectusWeight(of: body).bytes
    }

    /// Returns about how many bytes the changes in a body of `bytes` bytes have together, if that
    /// body is in another form, such as a parked one.
    package func decodedBytes(ofOtherForm bytes: Int) -> Int {
        preset == .directus ? 32 * bytes : bytes
    }
}
