import PostgresLink
package import Storage

/// The place of a store on PostgreSQL: a server's database, and a schema in it.
package struct PostgresPlace: Sendable, Hashable, CustomStringConvertible {
    /// The server, the database and how to connect.
    let target: PostgresTarget
    /// The schema that contains everything of the store, and nothing else.
    package let schema: String
    /// The file of certificate authorities that sign a remote server's certificate, unless the URL
    /// names one.
    let authorities: String?
    /// Whether a server without a synchronous standby is refused.
    let requiresStandby: Bool

    /// The schema if none is configured.
    package static let usualSchema = "belfry"
    /// The rule for schema names, for messages; a name in PostgreSQL has at most 63 bytes.
    package static let schemaRule =
        "a lower-case letter or _, then lower-case letters, digits or _, at most 63 in all"

    /// Parses `postgresql://…`.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` with what is wrong. It does not
    ///   contain the URL, which may have a password.
    package init(
        url: String, schema: String = usualSchema, authorities: String? = nil,
        requiresStandby: Bool = false
    ) throws(StorageError) {
        guard Self.isSchema(schema) else {
            throw .inaccessible(
                path: "storage.schema",
                reason: "a schema must be \(Self.schemaRule), and must not begin with pg_")
        }
        do {
            target = try PostgresTarget(url)
        } catch let bad {
            throw .inaccessible(path: "storage.url", reason: bad.reason)
        }
        guard !target.wantsReader else {
            throw .inaccessible(
                path: "storage.url",
                reason: "target_session_attrs must be read-write, primary or any: the relay needs "
                    + "the server that can be written to")
        }
        self.schema = schema
        self.authorities = authorities
        self.requiresStandby = requiresStandby
    }

    /// Returns the place of another schema in the same database.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if the name is invalid.
    package func beside(schema other: String) throws(StorageError) -> PostgresPlace {
        guard Self.isSchema(other) else {
            throw .inaccessible(
                path: "nodes.schemas",
                reason: "a schema must be \(Self.schemaRule), and must not begin with pg_")
        }
        return PostgresPlace(self, schema: other)
    }

    private init(_ other: PostgresPlace, schema: String) {
        target = other.target
        self.schema = schema
        authorities = other.authorities
        requiresStandby = other.requiresStandby
    }

    /// Returns whether a text is a valid schema name by ``schemaRule``, and not one of the server's
    /// own.
    package static func isSchema(_ text: String) -> Bool {
        text.utf8.count <= 63 && text.wholeMatch(of: #/[a-z_][a-z0-9_]*/#) != nil
            && !text.hasPrefix("pg_")
    }

    /// Returns whether a text is meant as a place on a server, valid or not, and not as a file.
    package static func isMeant(by text: String) -> Bool { PostgresTarget.isMeant(by: text) }

    /// The place in words, without secrets.
    package var description: String { "schema \(schema) of \(target)" }

    /// The error for a place without a store.
    var missing: StorageError { .missingSchema(place: "\(self)", schema: schema) }
}
