import Crypto
import PredicateLanguage
import RelayModel
import Storage

extension LiveQuery {
    /// Queries with the same identity show the same, and are one group.
    ///
    /// It is that of `reader` alone where what is shown depends on who looks. It is a digest,
    /// because texts are equal also where their bytes differ: two spellings of one letter are two
    /// users, and two conditions.
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

    /// One text of several, which no others give: each says how long it is.
    private static func joined(_ parts: [String]) -> String {
        parts.map { "\($0.utf8.count):\($0)" }.joined()
    }

    private static func digest(_ parts: [String]) -> String {
        Hexadecimal.encode(SHA256.hash(data: Array(joined(parts).utf8)))
    }

    /// What it takes in memory besides what it shows, about: a group, all that it says, and its
    /// condition wherever that is filed.
    var ownBytes: Int {
        // Changes are judged on the record before, too.
        let filings = kind == .changes ? 2 : 1
        return parts(for: nil).reduce(Self.groupBytes + filings * conditionBytes) {
            $0 + $1.utf8.count
        }
    }

    /// What a group takes that shows nothing, about.
    private static let groupBytes = 2048

    /// Two conditions with the same canonical text are the same, whatever they were written in.
    ///
    /// A type says how long its name is, which may have blanks: the end of one type's name would be
    /// the beginning of another's condition, and whoever declares the one be told of the other.
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

    /// The relay's mark of the query as `reader` declares it under a schema: who comes back with
    /// the same one can be told what has changed, and nobody else.
    package func fingerprint(of reader: LiveReader, schema: String) -> String {
        String(Self.digest(parts(for: reader) + [schema]).prefix(16))
    }
}
