package import RelayModel

extension RecordPredicate {
    /// What shows in the condition itself and was probably not meant.
    package var ownWarnings: [PredicateWarning] { ownWarnings(by: nil) }

    /// The same of records that keep to `schema`, which somebody wrote down; `nil` where nobody
    /// did.
    ///
    /// Hints are for who writes in `form`. What a regular expression matches is not looked at.
    package func ownWarnings(
        by schema: RecordSchema?, in form: PredicateForm = .predicate
    ) -> [PredicateWarning] {
        ownWarnings(by: schema, in: form, .ofAllDialects(NoRegularExpressions()))
    }
}
