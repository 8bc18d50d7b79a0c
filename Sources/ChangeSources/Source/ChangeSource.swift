package import RelayModel

/// A configured webhook sender: how it proves itself, what its bodies mean, and what becomes of
/// those that cannot be read.
///
/// This room is pure: nothing in it suspends, logs or reads a clock. The server verifies first
/// (``verify(_:)``), on the raw bytes, and decodes then (``decode(_:)``).
package struct ChangeSource: Sendable, Hashable {
    /// The name, as it stands in the webhook's URL.
    package var name: SourceName
    /// The shape of the bodies.
    package var preset: SourcePreset
    /// How a webhook proves that it is this source's.
    package var verification: SourceVerification
    /// How the source's words become record types, record names and the rest.
    package var mapping: SourceMapping
    /// What becomes of a change that cannot be mapped.
    package var onUnmappable: UnmappablePolicy
    /// The longest body that is read, 1 byte to ``Limits/maximumWebhookBytes``.
    package var maximumBodyBytes: Int
    /// For how long two equal changes of a record without any identifier count as one, if no other
    /// one came between; zero for never.
    ///
    /// A longer window would swallow a change that was taken back where nobody told of it.
    package var contentWindow: Duration
    /// The database that the relay follows for this source, if it does.
    package var follow: FollowDefinition?

    /// Creates a source with the defaults of its preset; set the rest on the value.
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
}
