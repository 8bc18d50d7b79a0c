import RelayModel

/// A page of a list, bounded in rows and bytes, with at least one element if the list has any.
package struct Page<Element: Sendable>: Sendable {
    /// The elements, in order.
    package var elements: [Element]
    /// Whether the list continues after these elements.
    package var hasMore: Bool
    /// The bytes of stored text that were read for the page.
    package var bytes = 0

    package init(_ elements: [Element], hasMore: Bool) {
        self.elements = elements
        self.hasMore = hasMore
    }

    /// Returns the page with each element transformed.
    package func map<Other: Sendable>(
        _ transform: (Element) throws -> Other
    ) rethrows -> Page<Other> {
        var page = Page<Other>(try elements.map(transform), hasMore: hasMore)
        page.bytes = bytes
        return page
    }
}

/// The bounds of a page.
package struct PageBounds: Sendable, Hashable {
    /// The maximum number of rows, at least 1.
    package var rows: Int
    /// The maximum number of bytes of stored text.
    package var bytes: Int

    /// Creates bounds.
    ///
    /// The default for bytes is ``RelayModel/Limits/maximumPageBytes``.
    package init(rows: Int, bytes: Int = Limits.maximumPageBytes) {
        self.rows = max(1, rows)
        self.bytes = bytes
    }
}
