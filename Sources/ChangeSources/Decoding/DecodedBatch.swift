import Crypto
package import RelayModel

/// What one webhook says.
package struct DecodedBatch: Sendable, Hashable {
    /// The changes in the order of the body, and what could not or need not become one.
    package var items: [DecodedItem]
    /// The sender's name of this delivery, the same on every attempt, where it has one.
    package var transportKey: String?
    /// What the delivery as a whole is known by, where its changes are known by their places in it.
    ///
    /// Its digest is that of the number of places and no more: what was refused for a mapping that
    /// is corrected since may be another change on the next attempt.
    package var key: DedupeKey?
}

extension DecodedBatch {
    /// Takes all that is said of a record here, where that is several things one after the other,
    /// for its content: whoever repeats the delivery says all of it again.
    ///
    /// Each alone would be news then, since another one came of the record after it.
    mutating func joinContents() {
        guard items.count > 1 else { return }
        var told: [String: [[UInt8]]] = [:]
        for case .change(_, let key?) in items where key.kind == .content {
            if told[key.text]?.last != key.digest { told[key.text, default: []].append(key.digest) }
        }
        var places: [String: Int] = [:]
        for (index, item) in items.enumerated() {
            guard case .change(let change, let key?) = item, key.kind == .content,
                let contents = told[key.text], contents.count > 1
            else { continue }
            // What is said twice in a row has one place.
            var place = places[key.text] ?? 0
            if contents[place] != key.digest { place += 1 }
            places[key.text] = place
            let joined = DedupeKey(
                .content, place == 0 ? key.text : "\(key.text)#\(place)",
                digest: Array(SHA256.hash(data: contents.flatMap(\.self))), window: key.window)
            items[index] = .change(change, key: joined)
        }
    }
}

/// What became of one change in a webhook.
package enum DecodedItem: Sendable, Hashable {
    /// A change to append; `key` is `nil` where nothing says what would be a repetition.
    case change(RecordChange, key: DedupeKey?)
    /// A change that could not be mapped and is to be kept (``UnmappablePolicy/park``).
    case parked(ParkedBody)
    /// A change that could not be mapped and is refused in its place
    /// (``UnmappablePolicy/reject``, in a batch).
    case refused(path: String, reason: String)
    /// Something understood that is no change, such as a heartbeat.
    case ignored(reason: String)
}

/// What could not be mapped, with all that a second attempt needs.
package struct ParkedBody: Sendable, Hashable {
    /// What is wrong and what would be right.
    package var reason: String
    /// The place in the body.
    package var path: String
    /// The change as it came; a text in `$bytes` where the body was no JSON.
    package var raw: JSONValue
    /// Its place in its batch, which is part of its key.
    package var index: Int?
    /// The headers that decoding reads; none that a verification reads.
    package var headers: [String: String]

    /// The SHA-256 of the change as it came: a source that tries again parks the same thing twice.
    package var digest: [UInt8] {
        Array(SHA256.hash(data: raw.utf8 + Array("#\(index ?? -1)".utf8)))
    }

    /// The form in which it is stored and shown; ``ChangeSource/replay(_:receivedAt:)`` takes it
    /// again.
    package var json: JSONObject {
        var object: JSONObject = [
            "reason": .string(reason), "path": .string(path), "raw": raw,
            "headers": .object(
                JSONObject(headers.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) })),
        ]
        object["index"] = index.map { .integer(Int64($0)) }
        return object
    }

    /// Reads the stored form.
    ///
    /// - Throws: ``JSONContractError`` if it is not one.
    package init(json: JSONValue) throws(JSONContractError) {
        let reader = try JSONReader(json)
        reason = try reader.require("reason", try reader.string("reason"))
        path = try reader.string("path") ?? ""
        raw = reader.object["raw"] ?? .null
        index = try reader.integer("index").map { Int($0) }
        headers = try reader.table("headers", most: .max) { json, path throws(JSONContractError) in
            guard case .string(let text) = json else {
                throw JSONContractError(path: path, reason: "a string is expected")
            }
            return text
        }
    }

    /// Keeps what could not be mapped.
    package init(
        reason: String, path: String, raw: JSONValue, index: Int?, headers: [String: String]
    ) {
        self.reason = reason
        self.path = path
        self.raw = raw
        self.index = index
        self.headers = headers
    }
}
