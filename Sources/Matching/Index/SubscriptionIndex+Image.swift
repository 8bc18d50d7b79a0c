import RelayModel

extension SubscriptionIndex {
    /// The version of ``image()``.
    ///
    /// It must be raised whenever the meaning of the bytes changes: how predicates are planned,
    /// keys hashed or postings laid out. It also covers what is stored beside the image in a
    /// snapshot.
    package static let imageVersion: UInt32 = 8

    /// Returns the index as bytes for a snapshot.
    ///
    /// The bytes contain the seed and must be kept as secret. Matches and edits wait during the
    /// call: about a tenth of a second for a million subscriptions.
    ///
    /// - Throws: The error of the catalog's encoder, which would be a programming error.
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

    /// Creates an index from the bytes of ``image()``.
    ///
    /// The caller must have checked that they are complete and unchanged.
    ///
    /// - Throws: `ImageDamage` if they are of another version or are inconsistent.
    package convenience init(image bytes: [UInt8]) throws {
        var image = ImageReader(bytes)
        guard try image.word(UInt32.self) == Self.imageVersion else {
            throw ImageDamage("the index is of another version")
        }
        self.init(seed: try image.word())
        try writing { content in Result { try content.load(&image) } }.get()
    }
}
