import RelayModel

extension JSONReader {
    /// Returns the row in the member `name` as plain values; `nil` if it is absent or null.
    func row(
        _ name: String, _ completeness: ReportedImage.Completeness
    ) throws(JSONContractError) -> ReportedImage? {
        guard let reader = try reader(name) else { return nil }
        return ReportedImage(
            fields: FieldValue.fields(plain: reader.object), completeness: completeness,
            path: reader.path)
    }

    /// Returns the operation that the word in the member `name` stands for, compared without regard
    /// to case.
    func operation(
        _ name: String, _ words: [String: ChangeOperation]
    ) throws(JSONContractError) -> ChangeOperation {
        let word = try require(name, try string(name))
        guard let operation = words[word.lowercased()] else {
            let allowed = words.keys.sorted().joined(separator: ", ")
            throw failure(name, "\"\(word.prefix(64))\" is unknown; allowed are \(allowed)")
        }
        return operation
    }

    /// Returns the moment in the member `name`, a text or milliseconds since 1970; `nil` if it is
    /// absent or null.
    func moment(_ name: String) throws(JSONContractError) -> Timestamp? {
        let moment: Timestamp?
        switch value(name) {
        case nil: return nil
        case .integer(let count)?: moment = Timestamp(milliseconds: count).plausible
        case .string(let text)?: moment = Timestamp(iso8601: text)
        default: moment = nil
        }
        guard let moment else {
            throw failure(name, "must be milliseconds since 1970, or a date and time (RFC 3339)")
        }
        return moment
    }

    /// Returns the moment in the member `name`; `nil` if it is absent or malformed.
    func anyMoment(_ name: String) -> Timestamp? {
        (try? moment(name)) ?? nil
    }

    /// Returns the text or integer in the member `name` as text; `nil` if it is absent, null or
    /// neither.
    func anyText(_ name: String) -> String? {
        value(name).flatMap { FieldValue(plain: $0).nameText }
    }
}
