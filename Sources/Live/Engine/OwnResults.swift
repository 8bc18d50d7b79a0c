import RelayModel

/// The results that are somebody's own, because who looks decides what is shown: mostly one query
/// that all users declare.
///
/// An index finds one of them for all who declared the same, and the readers of the record say who
/// of them is meant: ten thousand users with a list of their own would otherwise be gone through
/// for each record of one of them.
///
/// A pure value.
struct OwnResults: Sendable {
    /// Those of one query.
    private struct Query {
        let identity: String
        /// The results, by whose they are.
        var numbers: [LiveReader: UInt32]
    }

    /// By the number of the one that an index finds for all.
    private var queries: [UInt32: Query] = [:]
    /// The number of that one, by the query's identity.
    private var filed: [String: UInt32] = [:]

    var isEmpty: Bool { queries.isEmpty }

    /// Takes a result in; one that is nobody's own is passed over.
    ///
    /// - Returns: whether an index is to find it, for all of its query that come.
    mutating func insert(_ group: LiveGroup) -> Bool {
        guard let reader = group.reader else { return true }
        let identity = group.query.identity(of: nil)
        if let number = filed[identity] {
            queries[number]?.numbers[reader] = group.number
            return false
        }
        filed[identity] = group.number
        queries[group.number] = Query(identity: identity, numbers: [reader: group.number])
        return true
    }

    /// Takes a result out.
    ///
    /// - Returns: The one that an index is to find in its place, if it found this one for others.
    mutating func remove(_ group: LiveGroup) -> UInt32? {
        guard let reader = group.reader else { return nil }
        guard var query = queries.removeValue(forKey: group.number) else {
            if let number = filed[group.query.identity(of: nil)],
                queries[number]?.numbers[reader] == group.number
            {
                queries[number]?.numbers[reader] = nil
            }
            return nil
        }
        query.numbers[reader] = nil
        let next = query.numbers.values.first
        filed[query.identity] = next
        if let next { queries[next] = query }
        return next
    }

    /// Whether an index finds this one, for whoever has declared the same.
    func isFiled(_ number: UInt32) -> Bool { queries[number] != nil }

    /// All results that an index finds by this one, which comes last.
    func all(foundBy number: UInt32) -> [UInt32] {
        guard let query = queries[number] else { return [number] }
        return query.numbers.values.filter { $0 != number }.sorted() + [number]
    }

    /// The results that are meant where an index has found some for a record.
    ///
    /// - Parameters:
    ///   - found: what the index has found, ascending.
    ///   - readers: who may read the record; `nil` is everybody.
    /// - Returns: Their numbers, ascending.
    func results(_ found: [UInt32], readableBy readers: [String]?) -> [UInt32] {
        guard !queries.isEmpty else { return found }
        var results: Set<UInt32> = []
        for number in found {
            guard let query = queries[number] else {
                results.insert(number)
                continue
            }
            guard let readers, !readers.contains(RecordChange.everybody) else {
                results.formUnion(query.numbers.values)
                continue
            }
            if let number = query.numbers[.server] { results.insert(number) }
            for name in readers {
                guard let user = UserID(rawValue: name), let number = query.numbers[.user(user)]
                else { continue }
                results.insert(number)
            }
        }
        return results.sorted()
    }
}
