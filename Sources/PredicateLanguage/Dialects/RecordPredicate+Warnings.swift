package import RelayModel

extension RecordPredicate {
    /// The warnings that follow from the condition itself, without a schema.
    package var ownWarnings: [PredicateWarning] { ownWarnings(by: nil) }

    /// Returns the warnings that follow from the condition itself.
    ///
    /// `schema` is the declared schema of the record type, or `nil` if there is none. Hints use the
    /// notation of `form`. Regular expressions are not evaluated.
    package func ownWarnings(
        by schema: RecordSchema?, in form: PredicateForm = .predicate
    ) -> [PredicateWarning] {
        ownWarnings(by: schema, in: form, .ofAllDialects(NoRegularExpressions()))
    }
}
