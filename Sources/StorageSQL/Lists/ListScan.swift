import RelayModel
import Storage

/// Reads a page of a list row by row, and ends it when it is full or enough was looked at.
struct ListScan {
    /// Rows that one page looks at, whether they are listed or not: reading one takes 20 µs.
    static let lookedAt = 10_000

    let bounds: PageBounds
    var lookedAt = Self.lookedAt

    /// What `read` makes of the rows; `nil` of those that are left out.
    ///
    /// `place` says where a row stands.
    func page<Element, Place>(
        of rows: RowCursor, place: (Row) throws -> Place,
        _ read: (Row) throws -> (element: Element?, bytes: Int)
    ) throws -> ListPage<Element, Place> {
        var page = ListPage<Element, Place>([], next: nil)
        var room = bounds.bytes
        var last: Place?
        var looked = 0
        while let row = try rows.next() {
            let isFull = page.elements.count >= bounds.rows || room <= 0
            guard page.elements.isEmpty || !isFull, looked < lookedAt else {
                page.next = last
                return page
            }
            looked += 1
            let (element, bytes) = try read(row)
            if let element {
                page.elements.append(element)
                room -= bytes
            }
            last = try place(row)
        }
        return page
    }
}
