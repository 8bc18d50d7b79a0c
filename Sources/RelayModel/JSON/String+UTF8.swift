extension String {
    /// The text whose UTF-8 is `bytes`; `nil` if they are no UTF-8.
    ///
    /// The same as the standard library's `init(validating:as:)`, which looks its generic types up
    /// for every text: 170 ns for a word of ASCII, which takes 47 here.
    ///
    /// - Complexity: O(*n*) in the number of bytes.
    @inlinable
    package init?(utf8 bytes: some Collection<UInt8>) {
        if bytes.isASCII {
            self.init(decoding: bytes, as: UTF8.self)
        } else {
            self.init(validating: bytes, as: UTF8.self)
        }
    }
}

extension Collection<UInt8> {
    /// Whether every byte is one of ASCII.
    ///
    /// - Complexity: O(*n*), many bytes at a time where they lie side by side.
    @inlinable
    package var isASCII: Bool {
        let all = withContiguousStorageIfAvailable { unsafe $0.reduce(0, |) }
        return (all ?? reduce(0, |)) < 0x80
    }
}
