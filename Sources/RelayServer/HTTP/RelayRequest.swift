package import HTTPTypes
package import RelayModel

/// Who is at the other end of a connection.
package struct Peer: Sendable, Hashable {
    /// Who called, be it directly or through a proxy that is believed.
    package var client: ClientAddress
    /// The relay's own address on this connection.
    package var reached: ClientAddress?
    /// Whether the connection is a proxy's that is believed.
    package var isTrustedProxy: Bool

    /// Describes who is there.
    package init(client: ClientAddress, reached: ClientAddress? = nil, isTrustedProxy: Bool = false)
    {
        self.client = client
        self.reached = reached
        self.isTrustedProxy = isTrustedProxy
    }
}

/// One request as the routes see it: whole, and without a connection.
package struct RelayRequest: Sendable {
    /// The method, in capitals.
    package var method: String
    /// The request target byte for byte: signatures cover it.
    package var target: String
    /// The parameters after the question mark, decoded.
    package var query: QueryParameters
    /// The header fields.
    package var headers: HTTPFields
    /// The named parts of the path, decoded.
    package var parameters: [String: String]
    /// The body, byte for byte; empty where ``upload`` has it.
    package var body: [UInt8]
    /// What the body says, where it was parsed ahead.
    var json: Result<JSONValue, any Error>?
    /// The lines of a body that is read as it comes.
    var upload: UploadedLines?
    /// Names this one request in answers and logs.
    package var uuid: String
    /// When it arrived, by the relay's clock.
    package var receivedAt: Timestamp
    /// The host, and port, that the client asked for, if it said so.
    package var authority: String?
    /// Who is at the other end of the connection; `nil` for a call within the process.
    package var peer: Peer?

    /// Creates a request; the query is read from `target`.
    package init(
        method: String, target: String, headers: HTTPFields = [:],
        parameters: [String: String] = [:], body: [UInt8] = [], uuid: String,
        receivedAt: Timestamp
    ) {
        self.method = method
        self.target = target
        query = QueryParameters(target: target)
        self.headers = headers
        self.parameters = parameters
        self.body = body
        self.uuid = uuid
        self.receivedAt = receivedAt
    }

    /// The target without the question mark and what follows.
    package var path: String {
        String(target.prefix { $0 != "?" })
    }

    /// The value of a header field, or `nil` if it is absent or empty.
    package func header(_ name: String) -> String? {
        guard let field = HTTPField.Name(name), let value = headers[field], !value.isEmpty
        else { return nil }
        return value
    }

    /// Whether a header field stands in the head more than once.
    func isRepeated(_ name: String) -> Bool {
        HTTPField.Name(name).map { headers[values: $0].count > 1 } ?? false
    }

    /// Whether the head says that a body follows.
    var announcesBody: Bool {
        if headers[.transferEncoding] != nil { return true }
        return headers[.contentLength].map { $0 != "0" } ?? false
    }

    /// A validated name from the path.
    ///
    /// - Throws: ``RelayModel/APIError`` that says what the name must be.
    func identifier<Identifier: ValidatedIdentifier>(
        _ name: String, as type: Identifier.Type = Identifier.self
    ) throws(APIError) -> Identifier {
        let text = parameters[name] ?? ""
        guard let identifier = Identifier(rawValue: text) else {
            throw APIError(
                .badRequest, "\(name) in the path: \"\(text.shortened)\" is not \(Identifier.rule)")
        }
        return identifier
    }

    /// One of the words that the path allows at `name`.
    ///
    /// - Throws: ``RelayModel/APIError`` that lists the words.
    func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String, as type: Choice.Type = Choice.self
    ) throws(APIError) -> Choice {
        let text = parameters[name] ?? ""
        guard let choice = Choice(rawValue: text) else {
            let words = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw APIError(
                .badRequest,
                "\(name) in the path: \"\(text.shortened)\" is unknown; allowed are \(words)")
        }
        return choice
    }

    /// The container and environment that the path names.
    ///
    /// - Throws: ``RelayModel/APIError`` if one of them is not a possible name.
    func containerKey() throws(APIError) -> ContainerKey {
        ContainerKey(
            container: try identifier("container"), environment: try environment())
    }

    /// The environment of the container, which clients write in capitals too.
    private func environment() throws(APIError) -> ContainerEnvironment {
        let text = parameters["environment"] ?? ""
        if let environment = ContainerEnvironment(rawValue: text.lowercased()) {
            return environment
        }
        return try choice("environment")
    }

    /// The body as JSON, whatever content type it claims: CloudKit's own clients send `text/plain`.
    ///
    /// - Throws: ``RelayModel/JSONSyntaxError``, or ``RelayModel/JSONContractError`` if it is not
    ///   an object.
    func jsonBody() throws -> JSONReader {
        guard !body.isEmpty else {
            throw APIError(.badRequest, "a JSON object is expected as the body, found nothing")
        }
        if let json { return try JSONReader(try json.get()) }
        return try JSONReader(try JSONValue(parsing: body))
    }

    /// The body as JSON, an empty one as an empty object.
    ///
    /// - Throws: As ``jsonBody()``.
    func optionalJSONBody() throws -> JSONReader {
        body.isEmpty ? try JSONReader([:]) : try jsonBody()
    }
}

extension JSONReader {
    /// One of the words that a member may have, in small letters or capitals.
    ///
    /// - Throws: `JSONContractError` that lists the words.
    func anyCase<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String
    ) throws(JSONContractError) -> Choice? {
        if let text = try string(name), let choice = Choice(rawValue: text.lowercased()) {
            return choice
        }
        return try choice(name)
    }
}

extension String {
    /// This text, cut so that an error message stays readable.
    var shortened: String { utf8.count <= 80 ? self : beginning(60) }

    /// This text, cut to what is kept of a reason: one may name something of any length.
    var excerpt: String { utf8.count <= 2000 ? self : beginning(500) }

    /// By scalars: one character may have any number of them.
    private func beginning(_ scalars: Int) -> String {
        String(String.UnicodeScalarView(unicodeScalars.prefix(scalars))) + "…"
    }
}
