package import RelayModel

/// The known tables of a source: the record types that its changes had, and the tables that are
/// followed.
package struct SeenTables: Sendable {
    /// The fields of each record type, from changes or from a declared schema.
    package var fields: [RecordType: Set<String>]
    /// The followed tables, as `schema.table`; empty if they are not known.
    package var followed: [String]

    package init(fields: [RecordType: Set<String>] = [:], followed: [String] = []) {
        self.fields = fields
        self.followed = followed
    }

    /// Returns whether `name` means a followed table.
    func follows(_ name: String) -> Bool {
        followed.contains { $0.utf8.elementsEqual(name.utf8) || $0.hasSuffix(".\(name)") }
    }
}

extension SourceMapping {
    /// Whether the mapping names tables or columns, which may be mistyped.
    package var namesTables: Bool {
        !recordTypes.isEmpty || !keys.isEmpty || !tables.isEmpty || !ignoredTables.isEmpty
            || !columns.isEmpty
    }

    /// Returns a sentence for each table or column in the mapping that no known table or field
    /// matches.
    ///
    /// The rows of a mistyped table get the general rules, for example without an owner. If nothing
    /// is known, there are no sentences, because later changes may match.
    ///
    /// - Parameter seen: The known tables.
    /// - Returns: The sentences; empty if everything matches.
    package func unmet(in seen: SeenTables) -> [String] {
        guard !seen.fields.isEmpty || !seen.followed.isEmpty else { return [] }
        var sentences: [String] = []
        for (member, names) in [
            ("recordTypes", Array(recordTypes.keys)), ("keys", Array(keys.keys)),
            ("tables", Array(tables.keys)),
        ] {
            for name in names.sorted() where !isMet(name, in: seen) {
                guard sentences.count < Self.mostSentences else { return sentences }
                sentences.append(
                    Self.sentence(member, name, "table", among: tableNames(in: seen)))
            }
        }
        // Changes of ignored tables never arrive, so only the followed tables can confirm their
        // names.
        for name in ignoredTables.sorted() where !seen.followed.isEmpty && !seen.follows(name) {
            guard sentences.count < Self.mostSentences else { return sentences }
            sentences.append(
                Self.sentence("ignoredTables", name, "table", among: tableNames(in: seen)))
        }
        let fields = seen.fields.values.reduce(into: Set<String>()) { $0.formUnion($1) }
        guard !fields.isEmpty else { return sentences }
        let known = fields.sorted()
        for name in columns.keys.sorted() where !isMet(column: name, among: fields) {
            guard sentences.count < Self.mostSentences else { return sentences }
            sentences.append(Self.sentence("columns", name, "column", among: known))
        }
        return sentences
    }

    /// The maximum number of sentences.
    ///
    /// More would say nothing new, and each one searches for a similar name.
    private static let mostSentences = 20

    private static func sentence(
        _ member: String, _ name: String, _ kind: String, among words: [String]
    ) -> String {
        let meant = NearestWord.to(name, among: words)
        return
            "mapping.\(member): no received change and no followed table has the \(kind) "
            + "\"\(name)\""
            + (meant.map { "; did you mean \"\($0)\"?" } ?? "")
    }

    /// Returns the names of tables that may have been meant.
    private func tableNames(in seen: SeenTables) -> [String] {
        let bare = seen.followed.compactMap { $0.split(separator: ".").last.map(String.init) }
        return seen.followed + bare + seen.fields.keys.map(\.rawValue).sorted()
    }

    /// Returns whether `name` means a followed table, or one that changes came from.
    private func isMet(_ name: String, in seen: SeenTables) -> Bool {
        if seen.follows(name) { return true }
        // A name with a dot may be that of a table, or may include the schema.
        let bare = Self.endings(of: name, most: 4)
        // Most names are those of the mapping itself. To compare the endings of all its names with
        // those of each takes the square of their number.
        if bare.contains(where: { recordTypes[$0].map { seen.fields[$0] != nil } ?? false }) {
            return true
        }
        let ends = bare.map { ".\($0)" }
        let types = recordTypes.filter { key, _ in
            bare.contains(key) || ends.contains { key.hasSuffix($0) }
        }
        if types.values.contains(where: { seen.fields[$0] != nil }) { return true }
        guard types.isEmpty else { return false }
        return seen.fields.keys.contains { type in
            recordTypeTemplate == Self.usualTemplate
                ? bare.contains(type.rawValue)
                : bare.contains { type.rawValue.contains($0) }
        }
    }

    /// Returns whether `name` means a known field; it is a column, alone or with its table before
    /// it.
    private func isMet(column name: String, among fields: Set<String>) -> Bool {
        Self.endings(of: name, most: 64).contains(where: fields.contains)
    }

    /// Returns a name, and the parts of it after each of its first dots.
    ///
    /// A table's name can have at most a schema and a database before it. All parts of a long name
    /// full of dots would take quadratic space.
    private static func endings(of name: String, most: Int) -> [String] {
        var endings = [name]
        var rest = name[...]
        while endings.count < most, let point = rest.firstIndex(of: ".") {
            rest = rest[rest.index(after: point)...]
            endings.append(String(rest))
        }
        return endings
    }
}
