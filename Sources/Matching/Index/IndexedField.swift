package import RelayModel

/// The number of keys for one field of one record type and one kind of key.
package struct IndexedField: Sendable, Hashable {
    /// The record type; `nil` for subscriptions to all types.
    package let recordType: RecordType?
    /// The field.
    ///
    /// It is empty if the key is about the record type only, or about a value that is derived from
    /// the field in another way than by another dialect's rules.
    package let field: String
    /// The kind of the keys: `equal`, `element`, `prefix`, `cell` and so on.
    package let asks: String
    /// The number of distinct keys.
    package let keys: Int
}

extension SubscriptionIndex {
    /// The numbers of keys by field and kind, the largest first.
    ///
    /// - Complexity: O(keys), with a cache miss for each: about a tenth of a second for a million
    ///   keys. Edits wait during this time; matching does not.
    package var paths: [IndexedField] {
        reading { content, _ in content.paths }
    }
}

extension RecordTypePlan {
    /// Returns the field of a path, also if the path is a view of the field by another dialect's
    /// rules.
    func field(of path: Int) -> String {
        if case .viewed(let base, _) = paths[path].origin { return paths[base].field }
        return paths[path].field
    }
}

extension IndexContent {
    /// The numbers of keys by field and kind, the largest first.
    var paths: [IndexedField] {
        var counts = [Int](repeating: 0, count: catalog.dimensions.count)
        for (_, core) in cores { core.countKeys(into: &counts) }
        var sums: [IndexedField: Int] = [:]
        for (number, dimension) in catalog.dimensions.enumerated() where counts[number] > 0 {
            let plan = catalog.plans[Int(dimension.plan)]
            let path = Int(dimension.path)
            let field =
                dimension.kind == .every || path >= plan.paths.count ? "" : plan.field(of: path)
            let place = IndexedField(
                recordType: plan.recordType, field: field, asks: "\(dimension.kind)", keys: 0)
            sums[place, default: 0] += counts[number]
        }
        return sums.map { place, keys in
            IndexedField(
                recordType: place.recordType, field: place.field, asks: place.asks, keys: keys)
        }.sorted {
            let (left, right) = ($0.recordType?.rawValue ?? "", $1.recordType?.rawValue ?? "")
            return ($1.keys, left, $0.field, $0.asks) < ($0.keys, right, $1.field, $1.asks)
        }
    }
}
