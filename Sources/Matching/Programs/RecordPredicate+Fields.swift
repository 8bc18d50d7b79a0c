package import PredicateLanguage

extension RecordPredicate {
    /// The fields of the record on which its value depends; `nil` if that cannot be told from the
    /// text, because it computes the names of fields.
    package var fieldsRead: Set<String>? {
        var fields: Set<String> = []
        return root.collectFields(&fields) ? fields : nil
    }
}
