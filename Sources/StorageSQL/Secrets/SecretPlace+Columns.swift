package import Storage

extension SecretPlace {
    /// Every column that holds secrets, with its place as SQL.
    package static let columns: [(table: String, column: String, place: String)] = [
        containerColumn("privateKeyPEM"), containerColumn("userTokens"),
        containerColumn("certificate"),
        (
            table: "changeSource", column: "definition",
            place: """
            'changeSource.definition ' || (SELECT owner.name || '/' || owner.environment
                FROM container AS owner WHERE owner.id = changeSource.container)
                || '/' || changeSource.name
            """
        ),
        (
            table: "providerToken", column: "token",
            place: "'providerToken.token ' || teamID || '/' || keyID || '/' || environment"
        ),
        (table: "sessionSecret", column: "secret", place: "'\(session)'"),
    ]

    private static func containerColumn(
        _ column: String
    ) -> (table: String, column: String, place: String) {
        (
            table: "container", column: column,
            place: "'container.\(column) ' || name || '/' || environment"
        )
    }
}
