extension JSONReader {
    /// Returns the identifier `name`, or `nil` if it is absent or `null`.
    ///
    /// - Throws: ``JSONContractError`` if it is not a string, or not one that `Identifier` allows.
    public func identifier<Identifier: ValidatedIdentifier>(
        _ name: String, as type: Identifier.Type = Identifier.self
    ) throws(JSONContractError) -> Identifier? {
        guard let text = try string(name) else { return nil }
        guard let identifier = Identifier(rawValue: text) else {
            throw failure(name, "not \(Identifier.rule)")
        }
        return identifier
    }
}
