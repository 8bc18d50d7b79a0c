/// One field of a push's header block, pseudo-headers included.
public struct HeaderField: Sendable, Hashable {
    /// The name, in lower case.
    public var name: String
    /// The value.
    public var value: String

    /// Takes both as they were received, or as they are to be sent.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

extension [HeaderField] {
    /// The value of the first field `name`, which is given in lower case.
    public subscript(name: String) -> String? {
        first { $0.name == name }?.value
    }
}
