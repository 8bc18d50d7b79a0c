import RelayModel

/// One kind of thing in administrative answers: what its members are made of, and the columns in
/// which commands show it.
struct AdministrationRow<Element>: Sendable {
    /// One member.
    struct Member: Sendable {
        let member: JSONForm.Member
        let value: @Sendable (Element) -> JSONValue?

        /// A member that every row has.
        static func always(
            _ name: String, _ form: JSONForm, _ value: @escaping @Sendable (Element) -> JSONValue
        ) -> Member {
            Member(member: .always(name, form), value: value)
        }

        /// A member that is left out where there is nothing to say.
        static func maybe(
            _ name: String, _ form: JSONForm, _ value: @escaping @Sendable (Element) -> JSONValue?
        ) -> Member {
            Member(member: .maybe(name, form), value: value)
        }

        /// The same member of something that has an element in it.
        func of<Whole>(
            _ part: @escaping @Sendable (Whole) -> Element
        ) -> AdministrationRow<Whole>.Member {
            AdministrationRow<Whole>.Member(member: member) { value(part($0)) }
        }
    }

    /// What the row looks like.
    let form: JSONForm
    /// How tables show it.
    let columns: [AdministrationColumn]
    private let make: @Sendable (Element) -> JSONObject

    /// A row of described members.
    init(_ members: [Member], columns: [AdministrationColumn]) {
        form = .members(members.map(\.member))
        self.columns = columns
        make = { element in
            var object = JSONObject()
            for member in members { object[member.member.name] = member.value(element) }
            return object
        }
    }

    /// A row that something else describes.
    init(
        _ form: JSONForm, columns: [AdministrationColumn],
        _ make: @escaping @Sendable (Element) -> JSONObject
    ) {
        self.form = form
        self.columns = columns
        self.make = make
    }

    /// The row of `element`.
    func json(_ element: Element) -> JSONObject { make(element) }
}

/// A column of a table: its title, and the path of its value in a row.
package struct AdministrationColumn: Sendable, Hashable {
    /// The title, in small letters.
    package let title: String
    /// The names of members, each within the one before.
    package let path: [String]

    /// Names a column by its title and its path, with dots.
    package init(_ title: String, _ path: String) {
        self.title = title
        self.path = path.split(separator: ".").map(String.init)
    }
}
