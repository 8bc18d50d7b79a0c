import RelayModel
import Storage

extension PageBounds {
    /// Reads a page of what a statement finds, row by row, so that nothing beyond it is in memory.
    ///
    /// `read` makes an element of a row, or `nil` of one that is left out, and says what the row
    /// takes.
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
