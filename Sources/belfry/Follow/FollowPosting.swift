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

    /// What one request has at most, a little below what the relay takes.
    private static let maximumBody = Limits.maximumWebhookBytes - 256 * 1024
    /// A relay that is busy with others answers late.
    static let patience = TimeAmount.seconds(60)

    /// Makes ready what posts `rows` in their order; where they are too long for one request, in
    /// several.
    func prepare(_ rows: [FollowedRow]) -> PreparedRows {
        let bodies = Self.bodies(of: rows)
        return {
            var older = 0
            for body in bodies {
                switch await post(body) {
                case .taken: break
                case .takenAsOlder(let count): older += count
                case .not(let problem): return .not(problem)
                }
            }
            return older > 0 ? .takenAsOlder(older) : .taken
        }
    }

    /// The bodies of the requests.
    static func bodies(of rows: [FollowedRow]) -> [[UInt8]] {
        var bodies: [[UInt8]] = []
        var body: [UInt8] = []
        for row in rows {
            var element = JSONValue.object(row.json).utf8
            if element.count > maximumBody {
                element = JSONValue.object(row.lightened().json).utf8
            }
            if body.count + element.count > maximumBody {
                bodies.append(body + Array("]".utf8))
                body = []
            }
            body.append(UInt8(ascii: body.isEmpty ? "[" : ","))
            body += element
        }
        if !body.isEmpty { bodies.append(body + Array("]".utf8)) }
        return bodies
    }

    private func post(_ body: [UInt8]) async -> RowsTaken {
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
                return .not(
                    .relayRefuses("\(source.url) redirects to \(place): name the source itself"))
            }
            let bytes = try await response.body.collect(upTo: 4 * 1024 * 1024)
            answer = (Int(response.status.code), Array(bytes.readableBytesView))
        } catch {
            return .not(.relayUnreachable("\(source.url): \(ReachingFailure(error))"))
        }
        return Self.outcome(answer.status, answer.body, at: source.url)
    }

    /// What an answer says of the rows.
    static func outcome(_ status: Int, _ body: [UInt8], at url: String) -> RowsTaken {
        let json = (try? JSONValue(stored: body)) ?? .null
        if (200..<300).contains(status) {
            // Something before the relay, as a page to sign in at, may answer so as well: what it
            // was sent would be lost, because the database forgets what is said to be taken.
            guard case .object(let object) = json, case .array(let results)? = object["results"]
            else {
                return .not(.relayUnreachable("what answers at \(url) is no relay's change source"))
            }
            let older = results.count { result in
                guard case .object(let members) = result else { return false }
                return members["status"] == .string("stale")
            }
            return older > 0 ? .takenAsOlder(older) : .taken
        }
        let reason = "\(status): \(TriggerTarget.reason(json, status))"
        switch status {
        case 408, 429, 500...: return .not(.relayUnreachable(reason))
        // It would be refused each time anew, and hold up all that comes after it.
        case 422:
            return .not(
                .relayRefuses(
                    "\(reason); the source needs the preset postgres, and onUnmappable park"))
        default: return .not(.relayRefuses(reason))
        }
    }
}

extension FollowedRow {
    /// This row without its long values, which are unknown then: for one whose JSON is longer than
    /// a request may be, though PostgreSQL's text of it is not.
    func lightened() -> FollowedRow {
        var copy = self
        copy.before = before?.lightened
        copy.after = after?.lightened
        return copy
    }
}

extension RecordImage {
    var lightened: RecordImage {
        RecordImage(
            fields.filter { $0.value.notation.utf8.count <= 1024 }, completeness: .partial)
    }
}
