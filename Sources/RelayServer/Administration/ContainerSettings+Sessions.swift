import RelayModel
import Storage

extension SessionSettings {
    /// Reads how long session tokens are valid.
    ///
    /// A member that is not named keeps its value in `before`; `null` restores the default of a new
    /// container.
    ///
    /// - Throws: `JSONContractError` for a value that is out of range.
    init(_ reader: JSONReader, changing before: SessionSettings) throws(JSONContractError) {
        try reader.allowOnly(["minutes", "days"])
        let defaults = SessionSettings()
        self.init(
            minutes: try Self.number(
                "minutes", 1...43_200, reader, before.minutes, orNull: defaults.minutes),
            days: try Self.number("days", 1...365, reader, before.days, orNull: defaults.days))
    }

    private static func number(
        _ name: String, _ range: ClosedRange<Int64>, _ reader: JSONReader, _ before: Int,
        orNull standard: Int
    ) throws(JSONContractError) -> Int {
        if reader.object[name] == .null { return standard }
        guard let number = try reader.integer(name) else { return before }
        guard range.contains(number) else {
            throw reader.failure(name, "must be \(range.lowerBound) to \(range.upperBound)")
        }
        return Int(number)
    }

    /// The settings as JSON.
    var shownJSON: JSONValue {
        ["minutes": .integer(Int64(minutes)), "days": .integer(Int64(days))]
    }
}
