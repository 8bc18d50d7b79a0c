package import RelayModel

/// The change sources of containers, with their configuration.
package protocol SourceRegistry: Sendable {
    /// Saves a change source's configuration, whether it exists or not.
    func save(_ source: StoredSource) async throws
    /// Returns one change source, or `nil` if it is unknown.
    func source(_ name: SourceName, of container: ContainerKey) async throws -> StoredSource?
    /// Returns the change sources of one container, ordered by name.
    func sources(of container: ContainerKey) async throws -> [StoredSource]
    /// Deletes a change source and returns whether there was one.
    func deleteSource(_ name: SourceName, of container: ContainerKey) async throws -> Bool
}

/// A change source's configuration as the registry stores it.
package struct StoredSource: Sendable, Hashable {
    /// The container and environment.
    package var container: ContainerKey
    /// The name in the webhook's URL.
    package var name: SourceName
    /// The configuration as JSON, including secrets; `ChangeSources` reads it.
    package var definition: JSONValue
    /// When it was saved.
    package var savedAt: Timestamp

    package init(
        container: ContainerKey, name: SourceName, definition: JSONValue, savedAt: Timestamp
    ) {
        self.container = container
        self.name = name
        self.definition = definition
        self.savedAt = savedAt
    }
}
