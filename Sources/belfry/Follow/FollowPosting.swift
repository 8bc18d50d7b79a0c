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
        let parts = Self.parts(of: rows)
        return {
            var older = 0
            for part in parts {
                switch await Self.post(part[...], by: { await send($0) }) {
                case .taken: break
                case .takenAsOlder(let count): older += count
                case .not(let problem): return .not(problem)
                }
            }
            return older > 0 ? .takenAsOlder(older) : .taken
        }
    }

    /// The rows of the requests, each as the element of a body that it is.
    private static func parts(of rows: [FollowedRow]) -> [[[UInt8]]] {
        var parts: [[[UInt8]]] = []
        var part: [[UInt8]] = []
        var bytes = 0
        for row in rows {
            var element = JSONValue.object(row.json).utf8
            if element.count > maximumBody {
                element = JSONValue.object(row.lightened().json).utf8
            }
            if bytes + element.count > maximumBody, !part.isEmpty {
                parts.append(part)
                (part, bytes) = ([], 0)
            }
            part.append(element)
            bytes += element.count + 1
        }
        if !part.isEmpty { parts.append(part) }
        return parts
    }

    /// What an answer says of rows, and its status; 0 if there is none.
    typealias Answer = (status: Int, rows: RowsTaken)

    /// Posts rows in their order; by halves where together they are too long for the relay, whose
    /// `limits.webhookBytes` may be lower, or for a proxy before it: they would be refused each
    /// time anew, and hold up all that comes after them.
    static func post(
        _ rows: ArraySlice<[UInt8]>, by send: @Sendable ([UInt8]) async -> Answer
    ) async -> RowsTaken {
        var body = [UInt8(ascii: "[")]
        body += rows.joined(separator: [UInt8(ascii: ",")])
        body.append(UInt8(ascii: "]"))
        let answer = await send(body)
        guard answer.status == 413, rows.count > 1 else { return answer.rows }
        let middle = rows.startIndex + rows.count / 2
        var older = 0
        for half in [rows[..<middle], rows[middle...]] {
            switch await post(half, by: send) {
            case .taken: break
            case .takenAsOlder(let count): older += count
            case .not(let problem): return .not(problem)
            }
        }
        return older > 0 ? .takenAsOlder(older) : .taken
    }

    private func send(_ body: [UInt8]) async -> Answer {
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
                let problem = "\(source.url) redirects to \(place): name the source itself"
                return (Int(response.status.code), .not(.relayRefuses(problem)))
            }
            let bytes = try await response.body.collect(upTo: 4 * 1024 * 1024)
            answer = (Int(response.status.code), Array(bytes.readableBytesView))
        } catch {
            return (0, .not(.relayUnreachable("\(source.url): \(ReachingFailure(error))")))
        }
        return (answer.status, Self.outcome(answer.status, answer.body, at: source.url))
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
