import RelayModel

/// The form of one kind of row in administrative answers: its members, and the columns in which
/// commands show it.
struct AdministrationRow<Element>: Sendable {
    /// One member of the row, with the function that reads its value from an element.
    struct Member: Sendable {
        let member: JSONForm.Member
        let value: @Sendable (Element) -> JSONValue?

        /// Creates a member that every row has.
        static func always(
            _ name: String, _ form: JSONForm, _ value: @escaping @Sendable (Element) -> JSONValue
        ) -> Member {
            Member(member: .always(name, form), value: value)
        }

        /// Creates a member that a row omits when it has no value.
        static func maybe(
            _ name: String, _ form: JSONForm, _ value: @escaping @Sendable (Element) -> JSONValue?
        ) -> Member {
            Member(member: .maybe(name, form), value: value)
        }

        /// Returns this member for a larger value that contains the element.
        func of<Whole>(
            _ part: @escaping @Sendable (Whole) -> Element
        ) -> AdministrationRow<Whole>.Member {
            AdministrationRow<Whole>.Member(member: member) { value(part($0)) }
        }
    }

    /// The JSON Schema of the row.
    let form: JSONForm
    /// The columns of a table of rows.
    let columns: [AdministrationColumn]
    private let make: @Sendable (Element) -> JSONObject

    /// Creates a row from described members.
    init(_ members: [Member], columns: [AdministrationColumn]) {
        form = .members(members.map(\.member))
        self.columns = columns
        make = { element in
            var object = JSONObject()
            for member in members { object[member.member.name] = member.value(element) }
            return object
        }
    }

    /// Creates a row whose form is described elsewhere.
    init(
        _ form: JSONForm, columns: [AdministrationColumn],
        _ make: @escaping @Sendable (Element) -> JSONObject
    ) {
        self.form = form
        self.columns = columns
        self.make = make
    }

    /// Returns the JSON of `element`.
    func json(_ element: Element) -> JSONObject { make(element) }
}

/// A column of a table: its title, and the path of its value in a row.
package struct AdministrationColumn: Sendable, Hashable {
    /// The title, in lower case.
    package let title: String
    /// The path of the value: the names of nested members, the outermost first.
    package let path: [String]

    /// Creates a column from its title and its path, whose names are separated by dots.
    package init(_ title: String, _ path: String) {
        self.title = title
        self.path = path.split(separator: ".").map(String.init)
    }
}
