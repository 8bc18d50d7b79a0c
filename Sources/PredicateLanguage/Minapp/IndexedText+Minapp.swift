package import RelayModel

// What comparisons under Minapp's rules see of values, for an index that wants to look up what
// they would find.

extension IndexedText {
    /// The moment that a text stands for where Minapp compares it with a date.
    package static func moment(of text: String) -> Timestamp? {
        InternetDate.read(text)
    }
}

extension FieldValue {
    /// The value that a path of plain member names leads to, as a comparison under Minapp's rules
    /// sees it; lists are not passed.
    package func minappValue(at names: [String]) -> FieldValue {
        names.reduce(self) { $0.member($1) }
    }
}
