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
            checksum: "fd7aa60c32cde9c838796adb76c2fd39747ffb1b03c31e08470da7e3fbab7b78"),
        Migration(
            name: "v0002_recordSnapshots",
            sql: String(decoding: PackageResources.v0002_recordSnapshots_sql, as: UTF8.self),
            checksum: "4bc159b864c3998b2304892d66e2dfd106d75a3907d6cf1ccc3a8d0804610a69"),
    ]
}
