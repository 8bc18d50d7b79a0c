import RelayModel

/// The results that belong to one reader each, because the reader decides what is shown; mostly one
/// query that all users declare.
///
/// The index has only one of the results of a query, and the readers of a record say which of them
/// are meant. Otherwise ten thousand users, each with a list of their own, would be visited for
/// each record of one user.
///
/// This is a pure value.
struct OwnResults: Sendable {
    /// The results of one query.
    private struct Query {
        let identity: String
        /// The numbers of the results, by their readers.
        var numbers: [LiveReader: UInt32]
    }

    /// The queries, by the number of the result that the index has.
    private var queries: [UInt32: Query] = [:]
    /// The number of that result, by the query's identity.
    private var filed: [String: UInt32] = [:]

    var isEmpty: Bool { queries.isEmpty }

    /// Adds a result; one that is shared by all readers is ignored.
    ///
    /// - Returns: Whether the index needs to have it, on behalf of all results of its query.
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

    /// Removes a result.
    ///
    /// - Returns: The result that the index needs to have instead, if it had this one.
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

    /// Returns whether the index has this result, on behalf of all results of its query.
    func isFiled(_ number: UInt32) -> Bool { queries[number] != nil }

    /// Returns whether one of the results that the index finds by this one belongs to a user who
    /// may read a record.
    ///
    /// It takes as long as the shorter of the two lists.
    func hasReader(among names: ReaderNames, of number: UInt32) -> Bool {
        guard let readers = queries[number]?.numbers else { return false }
        if readers[.server] != nil { return true }
        guard let named = names.users else { return !readers.isEmpty }
        guard named.count >= readers.count else {
            return named.contains { readers[.user($0)] != nil }
        }
        return readers.keys.contains { reader in
            if case .user(let user) = reader { named.contains(user) } else { true }
        }
    }

    /// Returns all results that the index finds by this one, which comes last.
    func all(foundBy number: UInt32) -> [UInt32] {
        guard let query = queries[number] else { return [number] }
        return query.numbers.values.filter { $0 != number }.sorted() + [number]
    }

    /// Returns the results that are meant by what the index has found for a record.
    ///
    /// - Parameters:
    ///   - found: The numbers that the index has found, ascending.
    ///   - readers: The users who may read the record; `nil` means everybody.
    /// - Returns: The numbers of the results, ascending.
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
