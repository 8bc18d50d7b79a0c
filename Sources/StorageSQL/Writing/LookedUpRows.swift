/// What rows say that were fetched from the engine together, by their names.
///
/// No other commit writes meanwhile, so the copy is exact if every row that the commit itself
/// writes is noted.
struct LookedUpRows<Value> {
    /// The values by name; `nil` for a name without a row.
    private var values: [RowName: Value?] = [:]

    /// Looks up those of the names that were not looked up before, with `statement`, whose
    /// arguments they are.
    mutating func lookUp(
        _ names: [RowName], by statement: Statement, _ read: (Row) -> Value
    ) throws {
        var asked: Set<RowName> = []
        let new = names.filter { values[$0] == nil && asked.insert($0).inserted }
        guard !new.isEmpty else { return }
        let rows = try Row.fetchFirsts(statement, arguments: new.map(\.arguments))
        for (name, row) in zip(new, rows) { values[name] = .some(row.map(read)) }
    }

    /// Returns the value of a name that was looked up; `nil` without a row.
    subscript(name: RowName) -> Value? {
        guard let value = values[name] else { preconditionFailure("the row was not looked up") }
        return value
    }

    /// Notes what the commit writes.
    mutating func note(_ value: Value, of name: RowName) { values[name] = .some(value) }
}
