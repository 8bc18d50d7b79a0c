package import RelayModel

/// How many keys an index has for one field of one record type, by what they ask.
package struct IndexedField: Sendable, Hashable {
    /// The record type; `nil` for subscriptions to all.
    package let recordType: RecordType?
    /// The field; empty where nothing but the record type is asked, or the value is derived from
    /// it otherwise than by another dialect's rules.
    package let field: String
    /// What is asked of it: `equal`, `element`, `prefix`, `cell` and so on.
    package let asks: String
    /// Distinct keys.
    package let keys: Int
}

extension SubscriptionIndex {
    /// The keys by field and by what they ask, most keys first.
    ///
    /// - Complexity: O(keys), with a cache miss each: about a tenth of a second for a million.
    ///   Edits wait meanwhile, matching does not.
    package var paths: [IndexedField] {
        reading { content, _ in content.paths }
    }
}

extension RecordTypePlan {
    /// The field of a path, also where it is seen by another dialect's rules.
    func field(of path: Int) -> String {
        if case .viewed(let base, _) = paths[path].origin { return paths[base].field }
        return paths[path].field
    }
}

extension IndexContent {
    /// The keys by field and by what they ask, most keys first.
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
