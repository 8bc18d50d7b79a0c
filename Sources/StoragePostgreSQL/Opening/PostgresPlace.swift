import PostgresLink
package import Storage

/// Where a store on PostgreSQL is: a database of a server, and a schema in it.
package struct PostgresPlace: Sendable, Hashable, CustomStringConvertible {
    /// How the server is reached.
    let target: PostgresTarget
    /// The schema that holds everything, and nothing else.
    package let schema: String
    /// The file of authorities by which a server elsewhere is known, unless the URL names one.
    let authorities: String?

    /// The schema unless one is named.
    package static let usualSchema = "belfry"
    /// What a schema's name may be; a name of PostgreSQL ends at 63 bytes.
    package static let schemaRule =
        "a small letter or _, then small letters, digits or _, at most 63 of them"

    /// Reads `postgresql://…`.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` with what is wrong; the text itself is
    ///   not in it, which may hold a password.
    package init(
        url: String, schema: String = usualSchema, authorities: String? = nil
    ) throws(StorageError) {
        guard Self.isSchema(schema) else {
            throw .inaccessible(
                path: "storage.schema",
                reason: "a schema is \(Self.schemaRule), and does not begin with pg_")
        }
        do {
            target = try PostgresTarget(url)
        } catch let bad {
            throw .inaccessible(path: "storage.url", reason: bad.reason)
        }
        self.schema = schema
        self.authorities = authorities
    }

    /// Another schema of the same database.
    ///
    /// - Throws: ``StorageError/inaccessible(path:reason:)`` if it cannot be one.
    package func beside(schema other: String) throws(StorageError) -> PostgresPlace {
        guard Self.isSchema(other) else {
            throw .inaccessible(
                path: "nodes.schemas",
                reason: "a schema is \(Self.schemaRule), and does not begin with pg_")
        }
        return PostgresPlace(target: target, schema: other, authorities: authorities)
    }

    private init(target: PostgresTarget, schema: String, authorities: String?) {
        self.target = target
        self.schema = schema
        self.authorities = authorities
    }

    /// Whether a text may be the name of a schema: ``schemaRule``, and none of the server's own.
    package static func isSchema(_ text: String) -> Bool {
        text.utf8.count <= 63 && text.wholeMatch(of: #/[a-z_][a-z0-9_]*/#) != nil
            && !text.hasPrefix("pg_")
    }

    /// Whether a text is meant for a place on a server, be it right or wrong, and not for a file.
    package static func isMeant(by text: String) -> Bool { PostgresTarget.isMeant(by: text) }

    /// Where it is, without anything secret.
    package var description: String { "schema \(schema) of \(target)" }

    /// That there is no store.
    var missing: StorageError { .missingSchema(place: "\(self)", schema: schema) }
}
