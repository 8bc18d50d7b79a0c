import RelayModel
import Storage

extension SessionSettings {
    /// Reads how long session tokens count.
    ///
    /// - Throws: `JSONContractError` for what is out of range.
    init(_ reader: JSONReader) throws(JSONContractError) {
        try reader.allowOnly(["minutes", "days"])
        let defaults = SessionSettings()
        self.init(
            minutes: try Self.number("minutes", 1...43_200, reader) ?? defaults.minutes,
            days: try Self.number("days", 1...365, reader) ?? defaults.days)
    }

    private static func number(
        _ name: String, _ range: ClosedRange<Int64>, _ reader: JSONReader
    ) throws(JSONContractError) -> Int? {
        guard let number = try reader.integer(name) else { return nil }
        guard range.contains(number) else {
            throw reader.failure(name, "must be \(range.lowerBound) to \(range.upperBound)")
        }
        return Int(number)
    }

    /// The settings as they are shown.
    var shownJSON: JSONValue {
        ["minutes": .integer(Int64(minutes)), "days": .integer(Int64(days))]
    }
}
