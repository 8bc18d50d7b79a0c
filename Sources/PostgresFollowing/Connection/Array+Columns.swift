extension [String?] {
    /// Reads one column of a result row.
    ///
    /// A missing column reads as NULL: a hostile server that answers with fewer columns than were
    /// requested must not crash the relay.
    func text(_ column: Int) -> String? {
        indices.contains(column) ? self[column] : nil
    }
}
