#if PostgreSQL
    import CPQ
#else
    import CNoPQ
#endif

/// Where a server is, and how it is reached: what libpq is told.
package struct PostgresTarget: Sendable, Hashable, CustomStringConvertible {
    private let parameters: [String: String]

    /// What an URL may say of a connection.
    ///
    /// No password: it would stand in the list of processes, or in the store. No `options`: what
    /// Belfry relies on is set by itself.
    static let allowed: Set<String> = [
        "host", "hostaddr", "port", "dbname", "user", "passfile", "service", "sslmode",
        "sslrootcert", "sslcert", "sslkey", "sslcrl", "connect_timeout", "target_session_attrs",
        "application_name", "channel_binding", "require_auth",
    ]

    /// Reads `postgresql://…`, or libpq's `key=value` pairs.
    ///
    /// - Throws: ``BadPostgresURL`` with what is wrong; the text itself is not in it, which may
    ///   hold a password.
    package init(_ text: String) throws(BadPostgresURL) {
        guard !BadPostgresURL.isNoURL(text) else { throw .noURL }
        guard !BadPostgresURL.hasCutPassword(text) else { throw .cutPassword }
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(text, &message) else {
            defer { PQfreemem(message) }
            let reason = message.map { String(cString: $0) } ?? "out of memory"
            throw BadPostgresURL(said: reason)
        }
        defer { PQconninfoFree(options) }
        let parameters = Self.values(options)
        guard parameters["password"] == nil else {
            throw BadPostgresURL(
                reason: "it holds a password, which others could see: put it into the file that "
                    + "PGPASSFILE names, or into PGPASSWORD")
        }
        if let other = parameters.keys.filter({ !Self.allowed.contains($0) }).min() {
            throw BadPostgresURL(
                reason: "\"\(other)\" cannot be set; allowed are "
                    + Self.allowed.sorted().joined(separator: ", "))
        }
        if let wrong = BadPostgresURL.wrongValue(parameters) { throw wrong }
        self.parameters = parameters
    }

    /// What options of libpq's have values, by its names for them.
    static func values(
        _ options: UnsafeMutablePointer<PQconninfoOption>
    ) -> [String: String] {
        var values: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                values[String(cString: keyword)] = String(cString: value)
            }
            option += 1
        }
        return values
    }

    /// What libpq takes where it is told nothing: of the environment, and of a service that this
    /// names.
    private static var defaults: [String: String] {
        guard let options = PQconndefaults() else { return [:] }
        defer { PQconninfoFree(options) }
        return values(options)
    }

    /// Whether a text is meant for a server, be it right or wrong, and not for a file: an URL, or
    /// pairs of which the first has a word of libpq.
    package static func isMeant(by text: String) -> Bool {
        let scheme = text.prefix { $0.isASCII && $0.isLetter }
        if !scheme.isEmpty, text.dropFirst(scheme.count).hasPrefix("://") { return true }
        guard let equals = text.firstIndex(of: "=") else { return false }
        let word = String(text[..<equals].filter { !$0.isWhitespace })
        // What is refused is meant for a server too, and is not repeated as the name of a file.
        return allowed.contains(word) || word == "password" || word == "options"
    }

    /// Where it is, without anything secret.
    package var description: String {
        let place = byHost(parameters).map { Self.address($0) }.joined(separator: ",")
        let database = parameters["dbname"] ?? parameters["user"] ?? ""
        return database.isEmpty && parameters["service"] != nil ? place : "\(place)/\(database)"
    }

    /// Where one host is.
    private static func address(_ one: [String: String]) -> String {
        let host =
            one["host"] ?? one["hostaddr"] ?? one["service"].map { "service \($0)" } ?? "localhost"
        return host + (one["port"].map { ":\($0)" } ?? "")
    }

    /// What libpq is told, once for each of several hosts alone.
    ///
    /// - Parameter all: What it is told of all of them.
    /// - Returns: One for each host, in their order; what was given where there is but one.
    package func byHost(_ all: [String: String]) -> [[String: String]] {
        var lists: [String: [String]] = [:]
        for name in ["host", "hostaddr", "port"] {
            guard let text = all[name] else { continue }
            lists[name] = text.split(separator: ",", omittingEmptySubsequences: false)
                .map { String($0) }
        }
        let count = max(lists["host"]?.count ?? 1, lists["hostaddr"]?.count ?? 1)
        guard count > 1 else { return [all] }
        return (0..<count).map { index in
            var one = all
            for (name, list) in lists {
                // One port is that of all; what is empty is as if it were not said.
                let value = list.count == 1 ? list[0] : index < list.count ? list[index] : ""
                one[name] = value.isEmpty ? nil : value
            }
            return one
        }
    }

    /// Whether nothing of the connection leaves the machine, by what the text says, and where that
    /// says nothing, by what libpq takes then: `defaults`, by its names.
    package func isLocal(beside defaults: [String: String]) -> Bool {
        let address = parameters["hostaddr"] ?? defaults["hostaddr"]
        let named = address ?? parameters["host"]
        let isOfService = named == nil && defaults["service"] != nil
        guard parameters["service"] == nil, !isOfService else { return false }
        let place = named ?? defaults["host"] ?? ""
        return place.split(separator: ",").allSatisfy {
            $0.hasPrefix("/") || $0 == "localhost" || $0.hasPrefix("127.") || $0 == "::1"
        }
    }

    /// Whether there are several servers, of which one is chosen.
    private var hasSeveralHosts: Bool {
        [parameters["host"], parameters["hostaddr"]].contains { $0?.contains(",") == true }
    }

    /// All that libpq is told, with what is taken where the URL says nothing.
    ///
    /// - Parameters:
    ///   - isReplication: whether the connection replicates.
    ///   - writesByDefault: whether a session must be one that may write before anything is set.
    ///   - authorities: the file with those whose certificates are believed.
    /// - Returns: The values by libpq's names for them.
    package func parameters(
        isReplication: Bool, writesByDefault: Bool = true, authorities: String?
    ) -> [String: String] {
        let isNear = isLocal(beside: Self.defaults)
        var all: [String: String] = [
            "application_name": "belfry", "client_encoding": "UTF8",
            "gssencmode": "disable", "keepalives_idle": "20", "keepalives_interval": "5",
            "keepalives_count": "3", "tcp_user_timeout": "30000",
            // Of several hosts the one that is not a standby: a failover needs no new URL. One
            // whose sessions only read may be a former primary that was shut out so.
            "target_session_attrs": writesByDefault || hasSeveralHosts ? "read-write" : "primary",
            "sslmode": isNear ? "prefer" : "verify-full",
        ]
        if !isNear, parameters["sslrootcert"] == nil, let authorities {
            all["sslrootcert"] = authorities
        }
        all.merge(parameters) { _, given in given }
        if isReplication { all["replication"] = "database" }
        return all
    }
}
