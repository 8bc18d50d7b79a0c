/// A form in which a condition can be written.
public enum PredicateDialect: String, Sendable, Hashable, CaseIterable {
    /// NSPredicate format strings, whole.
    case nspredicate
    /// Realm Query Language.
    case rql
    /// Minapp's `where`, in its JSON form.
    case `where`
    /// CloudKit Web Services' `filterBy`.
    case filterBy
    /// NSPredicate format strings, no more than CloudKit's CKQuery allows.
    case ckquery
}

extension PredicateDialect {
    /// Whether conditions are texts, which take arguments.
    public var isText: Bool {
        switch self {
        case .nspredicate, .rql, .ckquery: true
        case .where, .filterBy: false
        }
    }
}
