import Crypto
package import RelayModel

/// The contents of one webhook.
package struct DecodedBatch: Sendable, Hashable {
    /// The changes in the order of the body, including those that could not or need not be mapped.
    package var items: [DecodedItem]
    /// The sender's name of this delivery, which is the same on every attempt; `nil` if there is
    /// none.
    package var transportKey: String?
    /// The key of the delivery as a whole, if its changes are identified by their places in it.
    ///
    /// Its digest covers only the number of places. A change that was refused may be another one on
    /// the next attempt, if the mapping has been corrected since then.
    package var key: DedupeKey?
}

extension DecodedBatch {
    /// Gives several changes of one record in this webhook a joint content key.
    ///
    /// A repeated delivery repeats all of them. With a key of its own, each would count as new,
    /// because another content of the record came after it.
    mutating func joinContents() {
        guard items.count > 1 else { return }
        var told: [String: [[UInt8]]] = [:]
        for case .change(_, let key?) in items where key.kind == .content {
            if told[key.text]?.last != key.digest { told[key.text, default: []].append(key.digest) }
        }
        var places: [String: Int] = [:]
        // Of each record once, because one record may have a thousand contents.
        var digests: [String: [UInt8]] = [:]
        for (index, item) in items.enumerated() {
            guard case .change(let change, let key?) = item, key.kind == .content,
                let contents = told[key.text], contents.count > 1
            else { continue }
            // Equal consecutive contents share one place.
            var place = places[key.text] ?? 0
            if contents[place] != key.digest { place += 1 }
            places[key.text] = place
            let digest =
                digests[key.text] ?? Array(SHA256.hash(data: contents.flatMap(\.self)))
            digests[key.text] = digest
            let joined = DedupeKey(
                .content, place == 0 ? key.text : "\(key.text)#\(place)",
                digest: digest, window: key.window)
            items[index] = .change(change, key: joined)
        }
    }
}

/// The result of decoding one change of a webhook.
package enum DecodedItem: Sendable, Hashable {
    /// A change to append. `key` is `nil` if nothing identifies repetitions.
    case change(RecordChange, key: DedupeKey?)
    /// A change that could not be mapped and is to be kept (``UnmappablePolicy/park``).
    case parked(ParkedBody)
    /// A change that could not be mapped and is refused in its place
    /// (``UnmappablePolicy/reject``, in a batch).
    case refused(path: String, reason: String)
    /// Something understood that is not a change, such as a heartbeat.
    case ignored(reason: String)
    /// The end of a snapshot: kept records of these types that it did not contain are to be
    /// deleted.
    case ended(EndedTypes)
}

/// A body or change that could not be mapped, with everything that a second attempt needs.
package struct ParkedBody: Sendable, Hashable {
    /// What is wrong, and what would be right.
    package var reason: String
    /// The place in the body.
    package var path: String
    /// The change as it came, or a text in `$bytes` if the body was not JSON.
    package var raw: JSONValue
    /// The index in the batch, which is part of the key.
    package var index: Int?
    /// The headers that decoding reads.
    ///
    /// Headers that only verification reads are left out.
    package var headers: [String: String]

    /// The SHA-256 of the change as it came.
    ///
    /// A source that retries parks the same change twice.
    package var digest: [UInt8] {
        Array(SHA256.hash(data: raw.utf8 + Array("#\(index ?? -1)".utf8)))
    }

    /// The stored and displayed form, which ``ChangeSource/replay(_:receivedAt:)`` accepts.
    package var json: JSONObject {
        var object: JSONObject = [
            "reason": .string(reason), "path": .string(path), "raw": raw,
            "headers": .object(
                JSONObject(headers.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) })),
        ]
        object["index"] = index.map { .integer(Int64($0)) }
        return object
    }

    /// Parses the stored form.
    ///
    /// - Throws: ``JSONContractError`` if it is malformed.
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

    /// Creates the parked form of something that could not be mapped.
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
