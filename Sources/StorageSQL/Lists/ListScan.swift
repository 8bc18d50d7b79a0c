import RelayModel
import Storage

/// Reads one page of a list row by row, and ends it when it is full or enough rows were read.
struct ListScan {
    /// The maximum number of rows that one page reads, listed or not.
    ///
    /// Reading a row takes 20 µs.
    static let lookedAt = 10_000

    let bounds: PageBounds
    var lookedAt = Self.lookedAt

    /// Returns a page of the elements that `read` returns for the rows.
    ///
    /// Rows for which it returns `nil` are left out.
    ///
    /// `place` returns the place of a row in the list.
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
