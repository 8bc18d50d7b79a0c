import Live
import RelayModel

/// What a `set` frame changes.
struct LiveSetEdit {
    /// The list in which a query occurs.
    enum Place {
        /// The complete list of queries.
        case listed
        /// The list of new queries, which must not exist yet.
        case added
        /// The list of queries that are declared again, which must exist.
        case updated
    }

    /// The queries, with the lists in which they occur.
    private(set) var queries: [(json: JSONValue, path: String, place: Place)] = []
    /// The names of the queries that end; `nil` ends all others.
    private(set) var removed: [String]?
    private let refusesSame: Bool

    /// Parses the complete list, or an edit of the current version.
    ///
    /// - Throws: `JSONContractError`; 409 if the edit is based on another version.
    init(_ reader: JSONReader, current: Int64) throws {
        enum Existing: String, CaseIterable { case keep, error }
        refusesSame = try reader.choice("ifExists", as: Existing.self) == .error
        if let list = try reader.array("queries") {
            for name in ["base", "add", "update", "remove"] where reader.value(name) != nil {
                throw reader.failure(
                    name,
                    "cannot be given together with \"queries\", which is the whole list; an edit "
                        + "has a base")
            }
            queries = list.enumerated().map { ($1, reader.path(of: "queries[\($0)]"), .listed) }
            return
        }
        let base = try reader.require("base", try reader.integer("base"))
        guard base == current else {
            throw APIError(
                .conflict, "base: \(base) is not the current version, which is \(current)")
        }
        for (index, json) in (try reader.array("add") ?? []).enumerated() {
            queries.append((json, reader.path(of: "add[\(index)]"), .added))
        }
        for (index, json) in (try reader.array("update") ?? []).enumerated() {
            queries.append((json, reader.path(of: "update[\(index)]"), .updated))
        }
        removed = try reader.strings("remove") ?? []
    }

    /// Returns whether a query names itself; otherwise its name is its fingerprint.
    static func isNamed(_ json: JSONValue) -> Bool {
        guard case .object(let object) = json else { return false }
        switch object["id"] {
        case nil, .null?: return false
        default: return true
        }
    }

    /// Checks a query against the existing ones.
    ///
    /// - Returns: Whether to declare it; an unnamed query that exists already changes nothing.
    /// - Throws: 404 for an update of a missing query, or 409 for one that exists already.
    func admits(
        _ query: DeclaredQuery, isNamed: Bool, as place: Place, among others: [DeclaredQuery],
        _ known: [String: LiveQuery], path: String
    ) throws(APIError) -> Bool {
        let isThere = known[query.id] != nil && removed?.contains(query.id) != true
        let isTaken = place == .added && isThere || others.contains { $0.id == query.id }
        if isTaken, !isNamed, !refusesSame { return false }
        guard !isTaken else {
            throw APIError(
                .exists, "\(path).id: a query \"\(query.id.shortened)\" already exists",
                details: ["liveError": "duplicateQuery"])
        }
        if place == .updated, !isThere {
            throw APIError(
                .notFound, "\(path).id: there is no query \"\(query.id.shortened)\"",
                details: ["liveError": "unknownQuery"])
        }
        guard refusesSame else { return true }
        let isSame =
            known.contains {
                $0.key != query.id && $0.value.shows(theSameAs: query.query) && !ends($0.key)
            }
            || others.contains { $0.query == query.query }
        guard !isSame else {
            throw APIError(
                .exists, "\(path): the same query already exists",
                details: ["liveError": "duplicateQuery"])
        }
        return true
    }

    /// Returns whether the query of this name is removed or declared again.
    func ends(_ name: String) -> Bool {
        guard let removed else { return true }
        return removed.contains(name)
            || queries.contains { json, _, place in
                guard place != .added, case .object(let object) = json else { return false }
                return object["id"] == .string(name)
            }
    }

    /// Returns the number of queries of notifications after the edit.
    func inboxes(after declared: [DeclaredQuery], _ known: [String: LiveQuery]) -> Int {
        var kinds = removed == nil ? [:] : known.mapValues(\.kind)
        for name in removed ?? [] { kinds[name] = nil }
        for query in declared { kinds[query.id] = query.query.kind }
        return kinds.values.count { $0 == .notifications }
    }

    /// Returns the number of queries after the edit.
    func count(after declared: [DeclaredQuery], _ known: [String: LiveQuery]) -> Int {
        let names = Set(declared.map(\.id))
        guard let removed else { return names.count }
        return names.union(known.keys).subtracting(removed.filter { !names.contains($0) }).count
    }
}
