/// One step of the schema, in the order of its number; a released one never changes.
package struct Migration: Sendable, Hashable {
    /// The name of the file, without its ending.
    package let name: String
    /// The statements.
    package let sql: String
    /// SHA-256 of the file in hexadecimal digits; a test compares it with the file.
    package let checksum: String

    /// Creates a step.
    package init(name: String, sql: String, checksum: String) {
        self.name = name
        self.sql = sql
        self.checksum = checksum
    }

    /// Every released step; the version of a schema is how many of them it has.
    package static let released: [Migration] = [
        Migration(
            name: "v0001_createSchema",
            sql: String(decoding: PackageResources.v0001_createSchema_sql, as: UTF8.self),
            checksum: "9c2332d0c19ce7c600f5c446a91aa165b395189077ffff5b460501c94c818593")
    ]
}
