import RelayModel
import RelayServer

/// The output of a command: the answer, and its readable form.
struct CommandOutput {
    /// The readable form of an answer.
    enum Form {
        /// One row for each element of a list.
        case table(AdministrationCall.List)
        /// One line for each member.
        case members
        /// A given text.
        case text(String)
        /// The answer as JSON.
        case json
    }

    let answer: JSONValue
    let form: Form
    /// A remark below the answer, for example that a secret is shown only once.
    var remark: String?

    init(_ answer: JSONValue, _ form: Form, remark: String? = nil) {
        self.answer = answer
        self.form = form
        self.remark = remark
    }

    /// Creates the output of `call`: its list as a table, or its members.
    init(_ answer: JSONValue, to call: AdministrationCall, remark: String? = nil) {
        self.init(answer, call.list.map { .table($0) } ?? .members, remark: remark)
    }

    /// Returns the text to print.
    ///
    /// Control characters from elsewhere are made harmless for a terminal.
    func text(asJSON: Bool) -> String {
        if asJSON { return ShownText.json(answer.text) }
        let text =
            switch form {
            case .table(let list): Self.table(rows(list.member), list.columns)
            case .members: Self.members(answer)
            case .text(let text): text
            case .json: ShownText.json(answer.text)
            }
        return ShownText.plain(remark.map { "\(text)\n\n\($0)" } ?? text)
    }

    private func rows(_ name: String) -> [JSONValue] {
        guard case .object(let object) = answer, case .array(let rows)? = object[name] else {
            return []
        }
        return rows
    }

    private static func table(_ rows: [JSONValue], _ columns: [AdministrationColumn]) -> String {
        guard !rows.isEmpty else { return "none" }
        let lines =
            [columns.map { $0.title.uppercased() }]
            + rows.map { row in columns.map { shown(row.member($0.path)) } }
        let widths = columns.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
        return lines.map { line in
            var text = ""
            for (column, cell) in line.enumerated() {
                let isLast = column == line.count - 1
                let padding = isLast ? 0 : widths[column] - cell.count + 2
                text += cell + String(repeating: " ", count: padding)
            }
            return text
        }.joined(separator: "\n")
    }

    private static func members(_ value: JSONValue) -> String {
        guard case .object(let object) = value else { return shown(value) }
        let width = object.members.map(\.name.count).max() ?? 0
        return object.members.map { member in
            let padding = String(repeating: " ", count: width - member.name.count)
            return "\(member.name)\(padding)  \(shown(member.value))"
        }.joined(separator: "\n")
    }

    /// Returns a value as a table cell: texts as they are, other values as JSON, without control
    /// characters.
    static func shown(_ value: JSONValue?) -> String {
        switch value {
        case nil, .null?: "-"
        case .array(let elements)? where elements.allSatisfy(\.isText):
            elements.map(\.shown).joined(separator: ", ")
        case let value?: value.shown
        }
    }
}

extension JSONValue {
    var isText: Bool {
        if case .string = self { true } else { false }
    }
}
