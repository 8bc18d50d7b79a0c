package import RelayModel

/// What is known of the tables of a source: what came of them, and what is followed.
package struct SeenTables: Sendable {
    /// The fields of each record type that came, or that somebody declared.
    package var fields: [RecordType: Set<String>]
    /// The tables that are followed, as `schema.table`; none where that is not said.
    package var followed: [String]

    package init(fields: [RecordType: Set<String>] = [:], followed: [String] = []) {
        self.fields = fields
        self.followed = followed
    }

    /// Whether a table is followed that is meant by `name`.
    func follows(_ name: String) -> Bool {
        followed.contains { $0.utf8.elementsEqual(name.utf8) || $0.hasSuffix(".\(name)") }
    }
}

extension SourceMapping {
    /// Whether it names tables or columns that somebody may have mistyped.
    package var namesTables: Bool {
        !recordTypes.isEmpty || !keys.isEmpty || !tables.isEmpty || !ignoredTables.isEmpty
            || !columns.isEmpty
    }

    /// What names a table or a column here that nothing bears which was seen, a sentence each.
    ///
    /// A mistyped table leaves its rows to what holds for all tables: without an owner, say. Where
    /// nothing is known it is silent; what comes later may bear the name.
    ///
    /// - Parameter seen: what is known of the tables.
    /// - Returns: The sentences; none where all is met.
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
        // Nothing comes of them: only what is followed says that there are such.
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

    /// More of them say nothing new, and each looks for what was meant.
    private static let mostSentences = 20

    private static func sentence(
        _ member: String, _ name: String, _ kind: String, among words: [String]
    ) -> String {
        let meant = NearestWord.to(name, among: words)
        return "mapping.\(member): nothing that came or is followed has the \(kind) \"\(name)\""
            + (meant.map { "; did you mean \"\($0)\"?" } ?? "")
    }

    /// Names of tables that could have been meant.
    private func tableNames(in seen: SeenTables) -> [String] {
        let bare = seen.followed.compactMap { $0.split(separator: ".").last.map(String.init) }
        return seen.followed + bare + seen.fields.keys.map(\.rawValue).sorted()
    }

    /// Whether a table is followed, or something came of one, that is meant by `name`.
    private func isMet(_ name: String, in seen: SeenTables) -> Bool {
        if seen.follows(name) { return true }
        // A name with a point may be that of a table, or have its schema in front.
        let bare = Self.endings(of: name, most: 4)
        let types = recordTypes.filter { key, _ in
            bare.contains { key == $0 || key.hasSuffix(".\($0)") }
        }
        if types.values.contains(where: { seen.fields[$0] != nil }) { return true }
        guard types.isEmpty else { return false }
        return seen.fields.keys.contains { type in
            recordTypeTemplate == Self.usualTemplate
                ? bare.contains(type.rawValue)
                : bare.contains { type.rawValue.contains($0) }
        }
    }

    /// Whether there is a field that is meant by `name`, a column alone or behind its table.
    private func isMet(column name: String, among fields: Set<String>) -> Bool {
        Self.endings(of: name, most: 64).contains(where: fields.contains)
    }

    /// A name, and what stands behind each of the first points in it.
    ///
    /// Before a table there are a schema and a database at the most; all endings of a long name of
    /// points would be the square of it.
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
