import AsyncHTTPClient
import ChangeSources
import NIOCore
import NIOHTTP1
import PostgresFollowing
import RelayModel

/// Posts rows to a change source of a relay.
struct FollowPosting: Sendable {
    let source: PostedSource
    let client: HTTPClient

    /// The maximum size of a request's body, a little below the relay's limit.
    private static let maximumBody = Limits.maximumWebhookBytes - 256 * 1024
    /// The time limit of a request.
    ///
    /// A busy relay answers late.
    static let patience = TimeAmount.seconds(60)

    /// Returns a closure that posts `rows` in their order, in several requests if they are too long
    /// for one.
    func prepare(_ rows: [FollowedRow]) -> PreparedRows {
        let parts = Self.parts(of: rows)
        return {
            var exceptions = RowExceptions()
            for part in parts {
                let outcome = await Self.post(part[...], by: { await send($0) })
                if let problem = exceptions.add(outcome) { return .not(problem) }
            }
            return exceptions.outcome
        }
    }

    /// Returns the rows of each request.
    private static func parts(of rows: [FollowedRow]) -> [[PostedRow]] {
        var parts: [[PostedRow]] = []
        var part: [PostedRow] = []
        var bytes = 0
        for row in rows {
            var posted = PostedRow(row)
            if posted.element.count > maximumBody { posted.lighten() }
            let count = posted.element.count
            if bytes + count > maximumBody, !part.isEmpty {
                parts.append(part)
                (part, bytes) = ([], 0)
            }
            part.append(posted)
            bytes += count + 1
        }
        if !part.isEmpty { parts.append(part) }
        return parts
    }

    /// The status of an answer, or 0 if there is none, and whether the rows were accepted.
    typealias Answer = (status: Int, rows: RowsTaken)

    /// Posts rows in their order.
    ///
    /// If they are too long for the relay, whose `limits.webhookBytes` may be lower, or for a
    /// proxy, they are posted in halves. Otherwise each attempt would be refused, and would hold up
    /// all later rows.
    static func post(
        _ rows: ArraySlice<PostedRow>, by send: @Sendable ([UInt8]) async -> Answer
    ) async -> RowsTaken {
        var body = [UInt8(ascii: "[")]
        body += rows.map(\.element).joined(separator: [UInt8(ascii: ",")])
        body.append(UInt8(ascii: "]"))
        let answer = await send(body)
        var exceptions = RowExceptions()
        guard answer.status == 413 else {
            if let problem = exceptions.add(answer.rows) { return .not(problem) }
            exceptions.tooLong += rows.filter(\.isShortened).map(\.name)
            return exceptions.outcome
        }
        if rows.count == 1, var row = rows.first {
            guard row.shorten() else { return answer.rows }
            return await post([row], by: send)
        }
        let middle = rows.startIndex + rows.count / 2
        for half in [rows[..<middle], rows[middle...]] {
            if let problem = exceptions.add(await post(half, by: send)) { return .not(problem) }
        }
        return exceptions.outcome
    }

    /// An answer with its body; the status is 0 if there is none.
    typealias EndAnswer = (status: Int, rows: RowsTaken, body: [UInt8])

    /// Posts the end of a snapshot until the relay has deleted all records that it did not contain.
    func post(_ end: SnapshotEnd) async -> RowsTaken {
        await Self.post(end) { await exchange($0) }
    }

    /// Posts the end of a snapshot by `send`, in halves if it is too long for a request.
    static func post(
        _ end: SnapshotEnd, by send: @Sendable ([UInt8]) async -> EndAnswer
    ) async -> RowsTaken {
        let body = [UInt8(ascii: "[")] + JSONValue.object(end.json).utf8 + [UInt8(ascii: "]")]
        while !Task.isCancelled {
            let answer = await send(body)
            if answer.status == 413 { return await postHalves(of: end, by: send) }
            if case .not = answer.rows { return answer.rows }
            guard isUnfinished(answer.body) else { return .taken }
        }
        return .not(.relayUnreachable("the command is ending"))
    }

    /// Posts the end of a snapshot as two ends with half of the tables each.
    ///
    /// The end of a single table that is still too long is given up, so that following goes on. The
    /// records that the snapshot did not contain then stay kept.
    private static func postHalves(
        of end: SnapshotEnd, by send: @Sendable ([UInt8]) async -> EndAnswer
    ) async -> RowsTaken {
        guard end.tables.count > 1 else { return .taken }
        let middle = end.tables.count / 2
        for tables in [end.tables[..<middle], end.tables[middle...]] {
            var half = end
            half.tables = Array(tables)
            let outcome = await post(half, by: send)
            guard outcome == .taken else { return outcome }
        }
        return .taken
    }

    /// Returns whether an answer says that more is to be deleted, and that the end is to be posted
    /// again.
    static func isUnfinished(_ body: [UInt8]) -> Bool {
        guard case .object(let object)? = try? JSONValue(stored: body),
            case .array(let results)? = object["results"]
        else { return false }
        return results.contains { result in
            guard case .object(let members) = result else { return false }
            return members["status"] == .string("unfinished")
        }
    }

    private func send(_ body: [UInt8]) async -> Answer {
        let answer = await exchange(body)
        return (answer.status, answer.rows)
    }

    /// Posts a body and returns the answer; its status is 0 if there is none.
    private func exchange(_ body: [UInt8]) async -> EndAnswer {
        var request = HTTPClientRequest(url: source.url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        for (name, value) in source.proof(of: body) {
            request.headers.add(name: name, value: value)
        }
        request.body = .bytes(ByteBuffer(bytes: body))
        let answer: (status: Int, body: [UInt8])
        do {
            let response = try await client.execute(request, timeout: Self.patience)
            if let place = response.redirection {
                let problem =
                    "\(source.url) redirects to \(place): give the URL of the source itself"
                return (Int(response.status.code), .not(.relayRefuses(problem)), [])
            }
            let bytes = try await response.body.collect(upTo: 4 * 1024 * 1024)
            answer = (Int(response.status.code), Array(bytes.readableBytesView))
        } catch {
            let problem = "\(source.url): \(ReachingFailure(error))"
            return (0, .not(.relayUnreachable(problem)), [])
        }
        let outcome = Self.outcome(answer.status, answer.body, at: source.url)
        return (answer.status, outcome, answer.body)
    }

    /// Returns what an answer says about the rows.
    static func outcome(_ status: Int, _ body: [UInt8], at url: String) -> RowsTaken {
        let json = (try? JSONValue(stored: body)) ?? .null
        if (200..<300).contains(status) {
            // Another server in between, such as a sign-in page, may also answer with 2xx. If that
            // counted as accepted, the rows would be lost, because the database drops what was
            // acknowledged.
            guard case .object(let object) = json, case .array(let results)? = object["results"]
            else {
                return .not(.relayUnreachable("\(url) is not the change source of a relay"))
            }
            func count(_ status: JSONValue) -> Int {
                results.count { result in
                    guard case .object(let members) = result else { return false }
                    return members["status"] == status
                }
            }
            return RowExceptions(older: count("stale"), parked: count("parked")).outcome
        }
        let reason = "\(status): \(TriggerTarget.reason(json, status))"
        switch status {
        case 408, 429, 500...: return .not(.relayUnreachable(reason))
        // Each attempt would be refused, and would hold up all later rows.
        case 422:
            return .not(
                .relayRefuses(
                    "\(reason); the source needs the preset postgres, and onUnmappable park"))
        default: return .not(.relayRefuses(reason))
        }
    }
}
