import Crypto
import RelayModel
import Storage

/// A place in an inbox, opaque to clients.
///
/// It identifies the inbox and the store. So a client that changed users or containers, or whose
/// relay was restored from a backup, is told to begin again, and does not miss notifications. It is
/// not a credential.
struct NotificationToken: Sendable, Hashable {
    /// The number of the last notification that the client got.
    let sequence: UInt64

    init(sequence: UInt64) {
        self.sequence = sequence
    }

    /// Decodes a token of `owner`'s inbox in `store`.
    ///
    /// - Throws: The error 400; for a token of another inbox, it tells the client to begin again.
    init(_ text: String, owner: InboxOwner, store: UUIDBytes) throws(APIError) {
        let bytes = Base64.decode(text) ?? []
        guard bytes.count == 16 else {
            throw APIError(
                .badRequest, "syncToken: must be a token from an answer of notifications/list")
        }
        guard Array(bytes[8...]) == Self.mark(of: owner, store) else {
            throw APIError.tokenExpired(
                "it belongs to another user or container, or was made before a backup was "
                    + "restored; start again without a syncToken")
        }
        sequence = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Returns the token's text for `owner` in `store`.
    func text(owner: InboxOwner, store: UUIDBytes) -> String {
        let number = stride(from: UInt64(56), through: 0, by: -8).map {
            UInt8(truncatingIfNeeded: sequence >> $0)
        }
        return Base64.encodeToken(number + Self.mark(of: owner, store))
    }

    private static func mark(of owner: InboxOwner, _ store: UUIDBytes) -> [UInt8] {
        let text = "inbox/\(StoreMark(store).text)/\(owner.container)/\(owner.user.rawValue)"
        return Array(SHA256.hash(data: Array(text.utf8)).prefix(8))
    }
}

extension StoredNotification {
    /// One entry of the history: the properties of `CKNotification`, and the complete push as it
    /// was sent.
    var json: JSONValue {
        let payload = (try? JSONValue(stored: payload)) ?? .null
        let ck: JSONObject =
            if case .object(let object) = payload, case .object(let ck)? = object["ck"] {
                ck
            } else { [:] }
        var entry: JSONObject = [
            "notificationID": .string(notificationID.description),
            "notificationType": .string(readAt == nil ? Self.type(ck) : "readNotification"),
            "subscriptionID": .string(subscriptionID.rawValue),
            "database": .string(database.rawValue),
            "created": ["timestamp": .integer(createdAt.milliseconds)],
            "isRead": .bool(readAt != nil),
            "isPruned": .bool(ck["p"] != nil),
            "payload": payload,
        ]
        entry["read"] = readAt.map { ["timestamp": .integer($0.milliseconds)] }
        return .object(entry)
    }

    private static func type(_ ck: JSONObject) -> String {
        if ck["qry"] != nil { return "query" }
        if ck["fet"] != nil { return "recordZone" }
        return ck["met"] == nil ? "unknown" : "database"
    }
}
