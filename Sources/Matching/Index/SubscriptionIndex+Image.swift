import RelayModel

extension SubscriptionIndex {
    /// Raised whenever the bytes of ``image`` mean something else than before: how predicates are
    /// planned, keys hashed or postings laid out; or those of what lies beside it in a snapshot.
    package static let imageVersion: UInt32 = 8

    /// The index as bytes, for a snapshot; it holds the seed, and is as secret as that.
    ///
    /// Nobody matches or edits meanwhile: about a tenth of a second for a million subscriptions.
    ///
    /// - Throws: What the encoder of the catalog throws, which is a mistake of the program.
    package func image() throws -> [UInt8] {
        try writing { content in
            Result {
                var image = ImageWriter()
                image.append(Self.imageVersion)
                image.append(content.seed)
                try content.write(to: &image)
                return image.bytes
            }
        }.get()
    }

    /// Makes an index of the bytes of ``image()``, which the caller knows to be whole.
    ///
    /// - Throws: `ImageDamage` if they are of another version or do not fit together.
    package convenience init(image bytes: [UInt8]) throws {
        var image = ImageReader(bytes)
        guard try image.word(UInt32.self) == Self.imageVersion else {
            throw ImageDamage("the index is of another version")
        }
        self.init(seed: try image.word())
        try writing { content in Result { try content.load(&image) } }.get()
    }
}
