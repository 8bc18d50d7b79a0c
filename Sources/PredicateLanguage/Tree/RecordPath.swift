extension RecordPredicate {
    /// A path from a record, or from another value, to a value inside it: `addr.city`,
    /// `kids.@max.age`, `tags[LAST]`.
    public struct RecordPath: Sendable, Hashable {
        /// The steps, outermost first.
        public var components: [Component]
        /// Where the path stands in the text that it came from.
        public var span: SourceSpan

        /// A path that was not read from a text has no span.
        public init(_ components: [Component], span: SourceSpan = .none) {
            self.components = components
            self.span = span
        }

        /// One step of a path.
        public enum Component: Sendable, Hashable {
            /// The member of that name; over a list, the list of the elements' members.
            case member(String)
            /// The member that a variable names: `rec.$key`.
            case variableMember(String)
            /// `[n]` of a list, `["key"]` of a dictionary.
            case element(Expression)
            /// `[FIRST]`.
            case first
            /// `[LAST]`.
            case last
            /// `[SIZE]`.
            case size
            /// `[*]`, all elements (RQL).
            case every
            /// `@count` and its kin; the rest of the path is applied to each element.
            case collection(CollectionOperator)
        }

        /// The name, if the path is one plain member.
        public var fieldName: String? {
            guard components.count == 1, case .member(let name) = components[0] else { return nil }
            return name
        }

        /// The names, if the path consists of plain members; `[]` for the record itself.
        public var memberNames: [String]? {
            var names: [String] = []
            for component in components {
                guard case .member(let name) = component else { return nil }
                names.append(name)
            }
            return names
        }
    }

    /// An operator on a collection inside a path; the raw value follows the `@`.
    public enum CollectionOperator: String, Sendable, Hashable, CaseIterable {
        /// The number of elements.
        case count
        /// The sum.
        case sum
        /// The mean.
        case average = "avg"
        /// The least.
        case minimum = "min"
        /// The greatest.
        case maximum = "max"
        /// The elements' values as a list.
        case unionOfObjects
        /// The elements' values as a list without repetitions.
        case distinctUnionOfObjects
        /// The elements of the elements' lists as a list.
        case unionOfArrays
        /// The elements of the elements' lists as a list without repetitions.
        case distinctUnionOfArrays
        /// The keys of a dictionary (RQL).
        case keys
        /// The values of a dictionary (RQL).
        case values
        /// The name of a value's kind (RQL).
        case type
        /// The number of incoming links (RQL).
        case links
    }
}
