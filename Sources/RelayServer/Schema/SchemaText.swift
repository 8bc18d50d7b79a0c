import RelayModel

/// CloudKit's schema language: `DEFINE SCHEMA`, roles, and record types with fields and grants
/// ("Integrating a Text-Based Schema into Your Workflow").
enum SchemaText {
    /// Returns the schema as text; what CloudKit has no word for is written as a comment.
    static func text(of schema: ContainerSchema) -> String {
        var lines = ["DEFINE SCHEMA"]
        for role in schema.roles { lines += ["", "    CREATE ROLE \(quoted(role.rawValue));"] }
        for type in schema.recordTypes.values.sorted(by: { $0.name < $1.name }) {
            let named = unwritable(type.name.rawValue).map { ["    // RECORD TYPE \($0)"] }
            lines += [""] + (named ?? self.lines(of: type))
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func lines(of type: RecordTypeDefinition) -> [String] {
        var members: [String] = []
        var comments: [String] = []
        for (name, field) in type.fields.sorted(by: { $0.key < $1.key }) {
            if let comment = unwritable(name) {
                comments.append("        // \(comment)")
                continue
            }
            guard field.type.element.isOfCloudKit else {
                comments.append("        // \(quoted(name)) \(field.type): not a type of CloudKit")
                continue
            }
            if field.uses.contains(.indexed) {
                comments.append(
                    "        // \(quoted(name)) is indexed: CloudKit has no word for it")
            }
            let element = (field.isEncrypted ? "ENCRYPTED " : "") + field.type.element.rawValue
            let words =
                [quoted(name), field.type.isList ? "LIST<\(element)>" : element]
                + FieldUses.words.filter { field.uses.contains($0.use) }.map(\.word)
            members.append("        " + words.joined(separator: " "))
        }
        members += type.grants.map {
            "        GRANT \($0.permission.rawValue) TO \"\($0.role)\""
        }
        return ["    RECORD TYPE \(quoted(type.name.rawValue)) ("] + comments
            + [members.joined(separator: ",\n"), "    );"].filter { !$0.isEmpty }
    }

    /// Returns the comment for a name that the language cannot write; `nil` for other names.
    ///
    /// Databases have such names, and their users may choose them. Without this, what follows a
    /// quotation mark would be read as part of the schema, such as grants, by anyone who imports
    /// the text.
    private static func unwritable(_ name: String) -> String? {
        guard name.utf8.contains(UInt8(ascii: "\"")) else { return nil }
        return
            "\(JSONValue.string(name).text): has a quotation mark, which this language does not "
            + "allow in names"
    }

    /// Returns a name, in quotation marks if the language would read it as something else.
    private static func quoted(_ name: String) -> String {
        RecordFieldReading.isClientName(name) && !reserved.contains(name.uppercased())
            ? name : "\"\(name)\""
    }

    private static let reserved: Set<String> = [
        "GRANT", "RECORD", "TYPE", "CREATE", "ROLE", "DEFINE", "SCHEMA", "LIST", "TO",
    ]

    /// Parses a schema.
    ///
    /// - Throws: ``SchemaTextError`` with the line and what is expected there.
    static func parse(_ text: String) throws(SchemaTextError) -> ContainerSchema {
        guard text.utf8.count <= Limits.maximumSchemaBytes else {
            throw SchemaTextError(
                line: 1, reason: "the text is longer than \(Limits.maximumSchemaBytes) bytes")
        }
        var parser = SchemaTextParser(try SchemaToken.tokens(of: text))
        return try parser.schema()
    }
}

/// An error in a schema's text, with its line.
struct SchemaTextError: Error, Sendable, Hashable, CustomStringConvertible {
    let line: Int
    let reason: String

    var description: String { "line \(line): \(reason)" }
}

/// A word, quoted name or punctuation mark of a schema's text.
struct SchemaToken: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case word, quoted, sign
    }

    let kind: Kind
    let text: String
    let line: Int

    /// Splits a text into tokens; `//` and `--` begin a comment.
    static func tokens(of text: String) throws(SchemaTextError) -> [SchemaToken] {
        var tokens: [SchemaToken] = []
        // Swift treats "\r\n" as one character. Split at "\n" alone, a text from Windows would be a
        // single line, and its first comment would be all the rest.
        let lines = text.split(omittingEmptySubsequences: false) {
            $0 == "\n" || $0 == "\r\n" || $0 == "\r"
        }
        for (index, line) in lines.enumerated() {
            try append(Array(line.utf8), line: index + 1, to: &tokens)
        }
        return tokens
    }

    private static func append(
        _ bytes: [UInt8], line: Int, to tokens: inout [SchemaToken]
    ) throws(SchemaTextError) {
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            let isComment =
                [0x2F, 0x2D].contains(byte) && index + 1 < bytes.count
                && bytes[index + 1] == byte
            if isComment { return }
            if byte == UInt8(ascii: "\"") {
                guard let end = bytes[(index + 1)...].firstIndex(of: byte) else {
                    throw SchemaTextError(line: line, reason: "a quotation mark is not closed")
                }
                tokens.append(token(.quoted, bytes[(index + 1)..<end], line))
                index = end + 1
            } else if isWord(byte) {
                let end = bytes[index...].firstIndex { !isWord($0) } ?? bytes.count
                tokens.append(token(.word, bytes[index..<end], line))
                index = end
            } else {
                if byte > 0x20 { tokens.append(token(.sign, bytes[index...index], line)) }
                index += 1
            }
        }
    }

    private static func token(
        _ kind: Kind, _ bytes: ArraySlice<UInt8>, _ line: Int
    ) -> SchemaToken {
        SchemaToken(kind: kind, text: String(decoding: bytes, as: UTF8.self), line: line)
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."):
            true
        default: byte >= 0x80
        }
    }
}
