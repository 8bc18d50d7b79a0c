import RelayModel

extension JSONReader {
    /// Returns the name of an HTTP header in the member `name`, which is required.
    func headerName(_ name: String) throws(JSONContractError) -> String {
        try require(name, try optionalHeaderName(name))
    }

    /// Returns the name of an HTTP header in the member `name`; `nil` if it is absent or null.
    func optionalHeaderName(_ name: String) throws(JSONContractError) -> String? {
        guard let text = try string(name) else { return nil }
        let isToken = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
        }
        guard isToken, (1...128).contains(text.utf8.count) else {
            throw failure(name, "must be the name of an HTTP header")
        }
        return text
    }
}
