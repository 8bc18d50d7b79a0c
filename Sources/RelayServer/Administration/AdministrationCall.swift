import RelayModel

/// One administrative call, described once: the route answers it, the command makes it and shows
/// what it answers, and the OpenAPI document says it to everybody else.
package struct AdministrationCall: Sendable {
    /// The path of everything of one container.
    static let container = "/admin/1/containers/{container}/{environment}"

    /// What a call is sent.
    struct Body: Sendable {
        let form: JSONForm
        let example: JSONValue?
        /// The members that it may have; `nil` if something else says so.
        let members: [String]?

        static func members(_ members: [JSONForm.Member], example: JSONValue? = nil) -> Body {
            Body(form: .members(members), example: example, members: members.map(\.name))
        }

        static func form(_ form: JSONForm, example: JSONValue? = nil) -> Body {
            Body(form: form, example: example, members: nil)
        }
    }

    /// What a call answers.
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

    /// The list in an answer, as commands show it.
    package struct List: Sendable {
        /// The member that has the rows.
        package let member: String
        /// The columns.
        package let columns: [AdministrationColumn]

        package init(member: String, columns: [AdministrationColumn]) {
            self.member = member
            self.columns = columns
        }
    }

    /// The method, in capitals.
    package let method: String
    /// The path, with `{name}` for its variable parts.
    package let path: String
    /// What it does, for people.
    let summary: String
    /// The parameters after the question mark.
    let query: [JSONForm.Member]
    /// What it is sent.
    let body: Body?
    /// What it answers: success, and what is worth saying besides.
    let answers: [Answer]
    /// The list in its answer, if it has one.
    package let list: List?
    /// What it does: unless said otherwise GET reads, and everything else may change something.
    let effect: RelayRoute.Effect

    /// Describes a call.
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

    /// Whether it is about what one store keeps, and not about a container, which says by itself
    /// where it lies, nor about who asks.
    private static func isOfShard(_ path: String) -> Bool {
        !path.hasPrefix(container) && !own.contains { path.hasPrefix($0) }
    }

    /// Describes a call that lists; `next` is the member with which one goes on, and `besides`
    /// what else is said of the whole.
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

    /// The answer of a call that lists; `next` is where one goes on.
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

    /// The body of `request`, which has no other members than the call says.
    ///
    /// - Throws: As ``RelayRequest/jsonBody()``, and `JSONContractError` for an unknown member.
    func body(of request: RelayRequest) throws -> JSONReader {
        let reader = try request.jsonBody()
        if let members = body?.members { try reader.allowOnly(members) }
        return reader
    }

    // MARK: The command

    /// Whether it may name the shard whose store is asked.
    package var takesShard: Bool { query.contains { $0.name == JSONForm.Member.shard.name } }

    /// The target of a request: the path with its variable parts, and the parameters that have a
    /// value.
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
    /// Every call, in the order of the documentation.
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
