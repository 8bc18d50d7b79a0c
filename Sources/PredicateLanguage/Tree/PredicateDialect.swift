/// A language or format for conditions.
public enum PredicateDialect: String, Sendable, Hashable, CaseIterable {
    /// The full NSPredicate format.
    case nspredicate
    /// The Realm Query Language.
    case rql
    /// Minapp's `where`, in its JSON form.
    case `where`
    /// CloudKit Web Services' `filterBy`.
    case filterBy
    /// The subset of the NSPredicate format that CloudKit's CKQuery allows.
    case ckquery
}

extension PredicateDialect {
    /// Whether conditions are texts, which can have arguments.
    public var isText: Bool {
        switch self {
        case .nspredicate, .rql, .ckquery: true
        case .where, .filterBy: false
        }
    }
}
