package import HTTPTypes
package import RelayModel

/// The other end of a connection.
package struct Peer: Sendable, Hashable {
    /// The address of the client, which connected directly or through a trusted proxy.
    package var client: ClientAddress
    /// The relay's own address on this connection.
    package var reached: ClientAddress?
    /// Whether the connection comes from a trusted proxy.
    package var isTrustedProxy: Bool

    /// Creates the description of a peer.
    package init(client: ClientAddress, reached: ClientAddress? = nil, isTrustedProxy: Bool = false)
    {
        self.client = client
        self.reached = reached
        self.isTrustedProxy = isTrustedProxy
    }
}

/// One request as the routes see it: complete, and without a connection.
package struct RelayRequest: Sendable {
    /// The method, in upper case.
    package var method: String
    /// The request target, unchanged, because signatures cover it.
    package var target: String
    /// The parameters after the question mark, decoded.
    package var query: QueryParameters
    /// The header fields.
    package var headers: HTTPFields
    /// The named parts of the path, decoded.
    package var parameters: [String: String]
    /// The body, unchanged; empty if ``upload`` has it.
    package var body: [UInt8]
    /// The parsed body, if it was parsed in advance.
    var json: Result<JSONValue, any Error>?
    /// The lines of a body that is read while it arrives.
    var upload: UploadedLines?
    /// The ID of this request in answers and logs.
    package var uuid: String
    /// The time of its arrival, by the relay's clock.
    package var receivedAt: Timestamp
    /// The host and port that the client addressed, if it sent them.
    package var authority: String?
    /// The other end of the connection; `nil` for a call within the process.
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

    /// The target without the question mark and the parameters.
    package var path: String {
        String(target.prefix { $0 != "?" })
    }

    /// Returns the value of a header field; `nil` if it is absent or empty.
    package func header(_ name: String) -> String? {
        guard let field = HTTPField.Name(name), let value = headers[field], !value.isEmpty
        else { return nil }
        return value
    }

    /// Returns whether a header field is there, if only with an empty value.
    func hasHeader(_ name: String) -> Bool {
        HTTPField.Name(name).map { headers[$0] != nil } ?? false
    }

    /// Returns whether a header field occurs more than once.
    func isRepeated(_ name: String) -> Bool {
        HTTPField.Name(name).map { headers[values: $0].count > 1 } ?? false
    }

    /// Whether the head announces a body.
    var announcesBody: Bool {
        if headers[.transferEncoding] != nil { return true }
        return headers[.contentLength].map { $0 != "0" } ?? false
    }

    /// Returns a validated name from the path.
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

    /// Returns one of the words that the path allows at `name`.
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

    /// Returns the container and environment that the path names.
    ///
    /// - Throws: ``RelayModel/APIError`` if one of them is not a valid name.
    func containerKey() throws(APIError) -> ContainerKey {
        ContainerKey(
            container: try identifier("container"), environment: try environment())
    }

    /// Returns the environment in the path, which clients write in upper case too.
    private func environment() throws(APIError) -> ContainerEnvironment {
        let text = parameters["environment"] ?? ""
        if let environment = ContainerEnvironment(rawValue: text.lowercased()) {
            return environment
        }
        return try choice("environment")
    }

    /// Parses the body as JSON, whatever content type it claims: CloudKit's own clients send
    /// `text/plain`.
    ///
    /// - Throws: ``RelayModel/JSONSyntaxError``, or ``RelayModel/JSONContractError`` if it is not
    ///   an object.
    func jsonBody() throws -> JSONReader {
        guard !body.isEmpty else {
            throw APIError(.badRequest, "the body must be a JSON object, but it is empty")
        }
        if let json { return try JSONReader(try json.get()) }
        return try JSONReader(try JSONValue(parsing: body))
    }

    /// Parses the body as JSON; an empty body counts as an empty object.
    ///
    /// - Throws: As ``jsonBody()``.
    func optionalJSONBody() throws -> JSONReader {
        body.isEmpty ? try JSONReader([:]) : try jsonBody()
    }
}

extension JSONReader {
    /// Returns one of the words that a member may have, in lower or upper case; `nil` if the member
    /// is absent.
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

    /// This text, cut to the length that is kept of a reason, which may quote a text of any length.
    var excerpt: String { utf8.count <= 2000 ? self : beginning(500) }

    /// Returns the first scalars: one character may have any number of them.
    private func beginning(_ scalars: Int) -> String {
        String(String.UnicodeScalarView(unicodeScalars.prefix(scalars))) + "…"
    }
}
