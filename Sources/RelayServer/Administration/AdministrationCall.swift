import RelayModel

/// The only description of one administrative call.
///
/// The server's route, the `belfry` command that makes the call and shows its answer, and the
/// OpenAPI document are all made from it.
package struct AdministrationCall: Sendable {
    /// The path prefix of the calls about one container.
    static let container = "/admin/1/containers/{container}/{environment}"

    /// The request body of a call.
    struct Body: Sendable {
        let form: JSONForm
        let example: JSONValue?
        /// The member names that the body may have; `nil` if this description does not restrict
        /// them.
        let members: [String]?

        static func members(_ members: [JSONForm.Member], example: JSONValue? = nil) -> Body {
            Body(form: .members(members), example: example, members: members.map(\.name))
        }

        static func form(_ form: JSONForm, example: JSONValue? = nil) -> Body {
            Body(form: form, example: example, members: nil)
        }
    }

    /// One possible answer of a call.
    struct Answer: Sendable {
        let status: Int
        let description: String
        let form: JSONForm

        init(_ status: Int, _ form: JSONForm, _ description: String = "Success") {
            self.status = status
            self.description = description
            self.form = form
        }
    }

    /// The list in an answer, as the commands show it.
    package struct List: Sendable {
        /// The member that contains the rows.
        package let member: String
        /// The columns that the commands show.
        package let columns: [AdministrationColumn]

        package init(member: String, columns: [AdministrationColumn]) {
            self.member = member
            self.columns = columns
        }
    }

    /// The HTTP method, in capitals.
    package let method: String
    /// The path, with `{name}` for its variable parts.
    package let path: String
    /// A summary of what the call does, for people.
    let summary: String
    /// The query parameters.
    let query: [JSONForm.Member]
    /// The request body; `nil` if the call takes none.
    let body: Body?
    /// The possible answers: the successful one, and others that need a description.
    let answers: [Answer]
    /// The list in the answer; `nil` if the answer has none.
    package let list: List?
    /// Whether the call reads or may change something; by default, only GET reads.
    let effect: RelayRoute.Effect

    /// Creates the description of a call.
    init(
        _ method: String, _ path: String, _ summary: String, query: [JSONForm.Member] = [],
        body: Body? = nil, answers: [Answer] = [Answer(200, .object)], list: List? = nil,
        effect: RelayRoute.Effect? = nil
    ) {
        self.effect = effect ?? RelayRoute.Effect(of: method)
        self.method = method
        self.path = path
        self.summary = summary
        self.query = Self.isOfShard(path) ? query + [.shard] : query
        self.body = body
        self.answers = answers
        self.list = list
    }

    /// Whether the call is about the contents of one store, so that it may name a shard.
    ///
    /// A call about a container needs no shard parameter, because the container determines the
    /// shard. A call about the caller alone has none either.
    private static func isOfShard(_ path: String) -> Bool {
        !path.hasPrefix(container) && !own.contains { path.hasPrefix($0) }
    }

    /// Creates the description of a call that lists rows.
    ///
    /// `next` is the member from which the caller continues the list, and `besides` are further
    /// members of the answer.
    init<Element>(
        listing member: String, _ row: AdministrationRow<Element>, at path: String,
        _ summary: String, query: [JSONForm.Member] = [], next: JSONForm.Member? = nil,
        besides: [JSONForm.Member] = []
    ) {
        let members: [JSONForm.Member] =
            [.always(member, .list(of: row.form))] + (next.map { [$0] } ?? []) + besides
        self.init(
            "GET", path, summary, query: query, answers: [Answer(200, .members(members))],
            list: List(member: member, columns: row.columns))
    }

    // MARK: The route

    /// Returns the answer of a call that lists rows; `next` is where the list continues.
    func answer(
        _ rows: [JSONObject], next: (name: String, value: JSONValue)? = nil,
        besides: JSONObject = [:]
    ) -> RelayAnswer {
        guard let list else { preconditionFailure("\(method) \(path) lists nothing") }
        var answer: JSONObject = [list.member: .array(rows.map { .object($0) })]
        if let next { answer[next.name] = next.value }
        answer.members += besides.members
        return RelayAnswer(json: .object(answer))
    }

    /// Returns the body of `request` after checking that it has only the members of the
    /// description.
    ///
    /// - Throws: As ``RelayRequest/jsonBody()``, and `JSONContractError` for an unknown member.
    func body(of request: RelayRequest) throws -> JSONReader {
        let reader = try request.jsonBody()
        if let members = body?.members { try reader.allowOnly(members) }
        return reader
    }

    // MARK: The command

    /// Whether the call may name the shard whose store answers.
    package var takesShard: Bool { query.contains { $0.name == JSONForm.Member.shard.name } }

    /// Returns the request target: the path with its variables filled in, and the query parameters
    /// that have a value.
    package func target(
        _ parts: [String: String] = [:], query: [(String, String?)] = []
    ) -> String {
        let path = path.split(separator: "/").map { part -> String in
            guard part.hasPrefix("{") else { return String(part) }
            let name = String(part.dropFirst().dropLast())
            guard let value = parts[name] else {
                preconditionFailure("\(method) \(self.path) without \(name)")
            }
            return PercentEncoding.encode(value)
        }
        let parameters = query.compactMap { name, value -> String? in
            guard self.query.contains(where: { $0.name == name }) else {
                preconditionFailure("\(method) \(self.path) has no parameter \(name)")
            }
            return value.map { "\(name)=\(PercentEncoding.encode($0))" }
        }
        return "/" + path.joined(separator: "/")
            + (parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&"))
    }
}

extension AdministrationCall {
    /// All calls, in the order of the documentation.
    package static let all: [AdministrationCall] = [
        overview, signIn, showSession, signOut, createSessionCode, showConsole, showSeries,
        showAttention, showContainerAttention, listPhones, summarizeContainer, listUsers,
        sendChange, showLogging, setLogging, renewCertificates, listTokens, createToken,
        revokeToken, audit, secrets, listShards, listContainers,
        showContainer, createContainer, setContainer, listKeys, createKey, revokeKey, listSources,
        showSource, setSource, rotateSource, deleteSource, listRefusals, showSchema, replaceSchema,
        keepRecords, showIndex, explain, rehearse, rehearseChanges, listSubscriptions,
        checkSubscription, deleteSubscription,
        listDevices, forgetDevice, listChanges, showChange, listenEvents, listParked, replayParked,
        dropParked,
        listNotifications, listCouriers, listSessions, revokeSessions, listLiveClients,
        listLiveGroups,
        listDeliveries, listContainerDeliveries, showDelivery, showContainerDelivery, listReceipts,
        listRetries, listDeadLetters,
        redriveDeadLetters, resume, dropDeadLetters,
    ]
}
