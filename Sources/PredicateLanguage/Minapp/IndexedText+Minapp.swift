package import RelayModel

// Values as comparisons under Minapp's rules see them, for an index that looks up what a comparison
// would find.

extension IndexedText {
    /// Returns the date that a text represents where Minapp compares it with a date.
    package static func moment(of text: String) -> Timestamp? {
        InternetDate.read(text)
    }
}

extension FieldValue {
    /// Returns the value at a path of plain member names, as a comparison under Minapp's rules sees
    /// it.
    ///
    /// The path does not go through lists.
    package func minappValue(at names: [String]) -> FieldValue {
        names.reduce(self) { $0.member($1) }
    }
}
