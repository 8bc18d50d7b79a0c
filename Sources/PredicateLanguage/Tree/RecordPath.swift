extension RecordPredicate {
    /// A path from a record, or from another value, to a value inside it: `addr.city`,
    /// `kids.@max.age`, `tags[LAST]`.
    public struct RecordPath: Sendable, Hashable {
        /// The components of the path, outermost first.
        public var components: [Component]
        /// The place of the path in the text that it was parsed from.
        public var span: SourceSpan

        /// Creates a path.
        ///
        /// Without a span, the path was not parsed from a text.
        public init(_ components: [Component], span: SourceSpan = .none) {
            self.components = components
            self.span = span
        }

        /// One component of a path.
        public enum Component: Sendable, Hashable {
            /// The member with the given name. Applied to a list, it is the list of that member of
            /// each element.
            case member(String)
            /// The member whose name is the value of a variable: `rec.$key`.
            case variableMember(String)
            /// The element of a list at an index, `[n]`, or the value of a dictionary's key,
            /// `["key"]`.
            case element(Expression)
            /// The first element: `[FIRST]`.
            case first
            /// The last element: `[LAST]`.
            case last
            /// The number of elements: `[SIZE]`.
            case size
            /// All elements: `[*]` (RQL).
            case every
            /// A collection operator such as `@count`. The rest of the path is applied to each
            /// element.
            case collection(CollectionOperator)
        }

        /// The name, if the path is a single plain member.
        public var fieldName: String? {
            guard components.count == 1, case .member(let name) = components[0] else { return nil }
            return name
        }

        /// The names, if the path consists only of plain members.
        ///
        /// It is `[]` for the record itself.
        public var memberNames: [String]? {
            var names: [String] = []
            for component in components {
                guard case .member(let name) = component else { return nil }
                names.append(name)
            }
            return names
        }
    }

    /// A collection operator in a path.
    ///
    /// The raw value is its name after the `@`.
    public enum CollectionOperator: String, Sendable, Hashable, CaseIterable {
        /// The number of elements.
        case count
        /// The sum.
        case sum
        /// The mean.
        case average = "avg"
        /// The least value.
        case minimum = "min"
        /// The greatest value.
        case maximum = "max"
        /// The values of the elements, as a list.
        case unionOfObjects
        /// The values of the elements, as a list without duplicates.
        case distinctUnionOfObjects
        /// The elements of the elements' lists, as one list.
        case unionOfArrays
        /// The elements of the elements' lists, as one list without duplicates.
        case distinctUnionOfArrays
        /// The keys of a dictionary (RQL).
        case keys
        /// The values of a dictionary (RQL).
        case values
        /// The name of a value's kind (RQL).
        case type
        /// The links of other objects to this one (RQL).
        case links
    }
}
