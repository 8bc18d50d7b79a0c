/// One field of a push's header block, pseudo-headers included.
public struct HeaderField: Sendable, Hashable {
    /// The name, in lower case.
    public var name: String
    /// The value.
    public var value: String

    /// Creates a field.
    ///
    /// Name and value stay as they are given.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

extension [HeaderField] {
    /// The value of the first field called `name`, which must be in lower case.
    public subscript(name: String) -> String? {
        first { $0.name == name }?.value
    }
}
