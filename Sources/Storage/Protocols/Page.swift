import RelayModel

/// A page of a list, bounded in rows and in bytes; it has one element at least.
package struct Page<Element: Sendable>: Sendable {
    /// The elements, in order.
    package var elements: [Element]
    /// Whether there are more after these.
    package var hasMore: Bool
    /// The bytes of stored text that were read for it.
    package var bytes = 0

    package init(_ elements: [Element], hasMore: Bool) {
        self.elements = elements
        self.hasMore = hasMore
    }

    /// The same page, with something made of each element.
    package func map<Other: Sendable>(
        _ transform: (Element) throws -> Other
    ) rethrows -> Page<Other> {
        var page = Page<Other>(try elements.map(transform), hasMore: hasMore)
        page.bytes = bytes
        return page
    }
}

/// What a page may have.
package struct PageBounds: Sendable, Hashable {
    /// Rows.
    package var rows: Int
    /// Bytes of stored text.
    package var bytes: Int

    /// Creates bounds; the bytes are those of ``RelayModel/Limits/maximumPageBytes`` unless given.
    package init(rows: Int, bytes: Int = Limits.maximumPageBytes) {
        self.rows = max(1, rows)
        self.bytes = bytes
    }
}
