import RelayModel
import Storage

/// Collects the records of a page: the first in the order of the query, as many as fit.
///
/// A page is limited in records and in bytes, but it has at least one record.
struct RecordPage: Sendable {
    private struct Entry: Sendable {
        let record: ShadowRecord
        let place: RecordQueryMarker
        let bytes: Int
    }

    let order: [RecordSortKey]
    let limit: Int
    let maximumBytes: Int
    let after: RecordQueryMarker?
    /// The first place that is known not to be on the page; if there is one, there are more
    /// records.
    private(set) var boundary: RecordQueryMarker?
    private var entries: [Entry] = []
    private var bytes = 0

    init(
        order: [RecordSortKey], limit: Int, after: RecordQueryMarker?,
        maximumBytes: Int = QueryAllowance.pageBytes
    ) {
        self.order = order
        self.limit = limit
        self.after = after
        self.maximumBytes = maximumBytes
    }

    /// The records, in order.
    var records: [ShadowRecord] { entries.map(\.record) }

    /// The place of the page's last record.
    var last: RecordQueryMarker? { entries.last?.place }

    /// Whether no further record can be on the page.
    var isFull: Bool { order.isEmpty && boundary != nil }

    /// Returns whether a record could be on the page, if it matches.
    func wants(_ record: ShadowRecord) -> Bool {
        guard !order.isEmpty else { return true }
        let place = RecordQueryMarker(record, order: order)
        return after?.precedes(place, order) ?? true
            && boundary.map { place.precedes($0, order) } ?? true
    }

    /// Adds a record that matches; returns whether further ones could be wanted.
    ///
    /// Complexity: O(log limit) comparisons and O(limit) moves, whatever the number of records is.
    mutating func take(_ scanned: ScannedRecord) -> Bool {
        let place = RecordQueryMarker(scanned.record, order: order)
        let index = order.isEmpty ? entries.count : self.index(of: place)
        entries.insert(
            Entry(record: scanned.record, place: place, bytes: scanned.bytes), at: index)
        bytes += scanned.bytes
        while entries.count > max(1, limit) || bytes > maximumBytes && entries.count > 1 {
            let surplus = entries.removeLast()
            bytes -= surplus.bytes
            boundary = surplus.place
        }
        return !isFull
    }

    /// Returns the index of a place among the entries.
    private func index(of place: RecordQueryMarker) -> Int {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].place.precedes(place, order) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }
}
