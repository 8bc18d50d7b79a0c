import RelayModel
import Storage

extension PageBounds {
    /// Reads a page of a statement's rows one by one, so that nothing beyond the page is in memory.
    ///
    /// `read` returns the element of a row, or `nil` if the row is left out, and the size of the
    /// row.
    func page<Element>(
        of rows: RowCursor, _ read: (Row) throws -> (element: Element?, bytes: Int)
    ) throws -> Page<Element> {
        var page = Page<Element>([], hasMore: false)
        while let row = try rows.next() {
            if !page.elements.isEmpty, page.elements.count >= self.rows || page.bytes >= bytes {
                page.hasMore = true
                break
            }
            let (element, size) = try read(row)
            page.bytes += size
            if let element { page.elements.append(element) }
        }
        return page
    }
}
