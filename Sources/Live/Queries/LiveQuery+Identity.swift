import Crypto
import PredicateLanguage
import RelayModel
import Storage

extension LiveQuery {
    /// Returns a text that is equal for queries that show the same; such queries share one group.
    ///
    /// With a `reader`, the identity is that reader's alone, for results that depend on who reads
    /// them. The identity is a digest because Swift treats texts as equal even if their bytes
    /// differ: two Unicode spellings of one letter are two users, and two conditions.
    func identity(of reader: LiveReader?) -> String {
        Self.digest(parts(for: reader))
    }

    private func parts(for reader: LiveReader?) -> [String] {
        var parts = [
            kind.rawValue, "\(place.container)", place.database.rawValue,
            place.owner?.rawValue ?? "", scopeText, "\(subscription.firesOn.rawValue)",
            subscription.firesWhen.rawValue, subscription.suppress.rawValue,
            Self.joined(subscription.changedKeys), orderText,
            desiredKeys.map(Self.joined) ?? "*", "\(showsBefore)",
            "\(form.isPlain) \(form.writesNumbersAsTexts)", inboxDatabase?.rawValue ?? "",
            "\(coalesces)",
        ]
        switch reader {
        case nil: parts.append("all")
        case .server?: parts.append("server")
        case .user(let user)?: parts.append("user \(user.rawValue)")
        }
        return parts
    }

    /// Joins texts unambiguously, by writing the length in front of each.
    private static func joined(_ parts: [String]) -> String {
        parts.map { "\($0.utf8.count):\($0)" }.joined()
    }

    private static func digest(_ parts: [String]) -> String {
        Hexadecimal.encode(SHA256.hash(data: Array(joined(parts).utf8)))
    }

    /// The estimated memory of the query itself, without what it shows: its group, its texts, and
    /// its condition wherever that is indexed.
    var ownBytes: Int {
        // A query of changes is judged on the record before the change, too.
        let filings = kind == .changes ? 2 : 1
        return parts(for: nil).reduce(Self.groupBytes + filings * conditionBytes) {
            $0 + $1.utf8.count
        }
    }

    /// The estimated memory of a group that shows nothing.
    private static let groupBytes = 2048

    /// The scope as text; conditions with the same canonical text are the same in every dialect.
    ///
    /// The name of a type is written with its length because it may contain spaces. Otherwise the
    /// end of one type's name could read as the beginning of another query's condition, and clients
    /// of one query would be sent the changes of the other.
    private var scopeText: String {
        func text(_ zoneID: ZoneID?) -> String { zoneID?.json.text ?? "*" }
        func text(_ type: RecordType?) -> String { type.map { Self.joined([$0.rawValue]) } ?? "*" }
        switch subscription.scope {
        case .query(let query, let zoneID):
            return "query \(text(zoneID)) \(text(query.recordType)) \(query.canonical)"
        case .zone(let zoneID, let type): return "zone \(text(zoneID)) \(text(type))"
        case .database(let type): return "database \(text(type))"
        }
    }

    private var orderText: String {
        let keys = order.map { "\($0.isAscending ? "+" : "-")\($0.field)" }
        let parts: [String] = [
            Self.joined(keys), text(of: start), text(of: end),
            firebase.map { text(of: $0) } ?? "", limit.map { "\($0)" } ?? "",
        ]
        return Self.joined(parts)
    }

    private func text(of bound: LiveBound?) -> String {
        bound.map { "\($0.isIncluded) \($0.value.notation.text)" } ?? ""
    }

    private func text(of firebase: FirebaseQuery) -> String {
        func text(_ bound: FirebaseQuery.Bound?) -> String {
            bound.map {
                "\($0.isIncluded) \($0.value.notation.text) \($0.key.map { "=" + $0 } ?? "")"
            } ?? ""
        }
        return Self.joined([
            "\(firebase.ordering ?? .priority)", "\(firebase.kinds)", text(firebase.start),
            text(firebase.end),
        ])
    }

    /// Returns the relay's mark of the query, as `reader` declares it under a schema.
    ///
    /// A returning client whose mark is still the same can be sent what has changed; any other
    /// client begins anew.
    package func fingerprint(of reader: LiveReader, schema: String) -> String {
        String(Self.digest(parts(for: reader) + [schema]).prefix(16))
    }
}
