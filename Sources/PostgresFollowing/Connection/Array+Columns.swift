extension [String?] {
    /// What a row of an answer has in a column.
    ///
    /// It has nothing in one that is not there: whatever calls itself PostgreSQL may answer with
    /// fewer columns than were asked for, and ends no relay by that.
    func text(_ column: Int) -> String? {
        indices.contains(column) ? self[column] : nil
    }
}
