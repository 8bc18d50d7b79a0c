#if PostgreSQL
    import CPQ
#else
    import CNoPQ
#endif

/// The address of a server and how to connect to it, as libpq's connection parameters.
package struct PostgresTarget: Sendable, Hashable, CustomStringConvertible {
    private let parameters: [String: String]

    /// The parameters that a URL may set.
    ///
    /// It may not set a password, which would be visible in the list of processes or in the store.
    /// It may not set `options`, because Belfry sets what it relies on itself.
    static let allowed: Set<String> = [
        "host", "hostaddr", "port", "dbname", "user", "passfile", "service", "sslmode",
        "sslrootcert", "sslcert", "sslkey", "sslcrl", "connect_timeout", "target_session_attrs",
        "application_name", "channel_binding", "require_auth",
    ]

    /// Parses `postgresql://…`, or libpq's `key=value` pairs.
    ///
    /// - Throws: ``BadPostgresURL`` with what is wrong. It does not contain the text, which may
    ///   have a password.
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
                reason: "it contains a password, which others could see: put it into the file that "
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

    /// Returns the options of libpq that have values, under libpq's names.
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

    /// The values that libpq uses if none are given: those of the environment, and of a service
    /// that it names.
    private static var defaults: [String: String] {
        guard let options = PQconndefaults() else { return [:] }
        defer { PQconninfoFree(options) }
        return values(options)
    }

    /// Returns whether a text is meant as a server, valid or not, and not as a file.
    ///
    /// That is a URL, or pairs that begin with a keyword of libpq.
    package static func isMeant(by text: String) -> Bool {
        let scheme = text.prefix { $0.isASCII && $0.isLetter }
        if !scheme.isEmpty, text.dropFirst(scheme.count).hasPrefix("://") { return true }
        guard let equals = text.firstIndex(of: "=") else { return false }
        let word = String(text[..<equals].filter { !$0.isWhitespace })
        // Refused keywords count too: such a text must not be repeated as the name of a file.
        return allowed.contains(word) || word == "password" || word == "options"
    }

    /// The server's address in words, without secrets.
    package var description: String {
        let place = byHost(parameters).map { Self.address($0) }.joined(separator: ",")
        let database = parameters["dbname"] ?? parameters["user"] ?? ""
        return database.isEmpty && parameters["service"] != nil ? place : "\(place)/\(database)"
    }

    /// Returns the address of one host in words.
    private static func address(_ one: [String: String]) -> String {
        let host =
            one["host"] ?? one["hostaddr"] ?? one["service"].map { "service \($0)" } ?? "localhost"
        return host + (one["port"].map { ":\($0)" } ?? "")
    }

    /// Returns the connection parameters for each of several hosts alone.
    ///
    /// - Parameter all: The parameters with all hosts.
    /// - Returns: One element for each host, in their order; `all` itself if there is only one.
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
                // A single port is that of all hosts; an empty value counts as not given.
                let value = list.count == 1 ? list[0] : index < list.count ? list[index] : ""
                one[name] = value.isEmpty ? nil : value
            }
            return one
        }
    }

    /// Returns whether the connection stays on this machine.
    ///
    /// If the text does not say, libpq's `defaults` decide, under libpq's names.
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

    /// Whether only a server that cannot be written to is accepted, or preferred.
    package var wantsReader: Bool {
        ["read-only", "standby", "prefer-standby"].contains(parameters["target_session_attrs"])
    }

    /// Whether several servers are named, of which one is chosen.
    private var hasSeveralHosts: Bool {
        [parameters["host"], parameters["hostaddr"]].contains { $0?.contains(",") == true }
    }

    /// Returns all connection parameters, with Belfry's values for what the URL does not set.
    ///
    /// - Parameters:
    ///   - isReplication: Whether it is a replication connection.
    ///   - writesByDefault: Whether the server must accept writes before any setting is changed.
    ///   - authorities: The file of trusted certificate authorities.
    /// - Returns: The values under libpq's names.
    package func parameters(
        isReplication: Bool, writesByDefault: Bool = true, authorities: String?
    ) -> [String: String] {
        let isNear = isLocal(beside: Self.defaults)
        var all: [String: String] = [
            "application_name": "belfry", "client_encoding": "UTF8",
            "gssencmode": "disable", "keepalives_idle": "20", "keepalives_interval": "5",
            "keepalives_count": "3", "tcp_user_timeout": "30000",
            // Of several hosts, the primary is chosen, so that a failover needs no new URL. A
            // primary whose sessions are read-only by default may be a former one that was fenced
            // in that way.
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
