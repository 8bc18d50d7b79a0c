package import PredicateLanguage

extension RecordPredicate {
    /// The fields of the record on which the predicate's value depends; `nil` if they cannot be
    /// told from the text, because the predicate computes field names.
    package var fieldsRead: Set<String>? {
        var fields: Set<String> = []
        return root.collectFields(&fields) ? fields : nil
    }
}
