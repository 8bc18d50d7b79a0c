import Live
import RelayModel
import Storage

/// The identity behind a connection, as its `hello` has proven it.
struct LiveIdentity: Sendable {
    /// The settings of the container.
    let settings: ContainerSettings
    /// The user; for a server that names none, the identity of its key.
    let user: UserID
    /// Whether a user was named, rather than derived from a key.
    let namesUser: Bool
    /// The device; frames name it in `by`, and its own changes may be left out for it.
    let device: DeviceID?
    /// Whether it is a server of the application itself.
    let isServer: Bool
    /// The ID of the access key.
    let keyID: String
    /// The session of the user's token.
    let session: UUIDBytes?
    /// The time at which the user's token ends.
    var endsAt: Timestamp?
    /// The form in which records are written.
    let form: LiveForm
    /// Whether a server signs as itself, and so sees only the public database.
    var isSigned = false

    /// The reader whose read rules apply.
    var reader: LiveReader { isServer ? .server : .user(user) }

    /// Returns the identity under another token of the same user; the device and the form of
    /// records stay.
    func renewed(by other: LiveIdentity) -> LiveIdentity {
        LiveIdentity(
            settings: other.settings, user: user, namesUser: namesUser, device: device,
            isServer: isServer, keyID: other.keyID, session: other.session, endsAt: other.endsAt,
            form: form, isSigned: other.isSigned)
    }
}

/// The reason for which a connection ends, with a code of RFC 6455 or of the application range.
struct LiveEnd: Error, Sendable {
    /// The codes by which programs distinguish ends (docs/live.md).
    enum Code: UInt16, Sendable {
        case done = 1000
        case goingAway = 1001
        case notUnderstood = 4400
        case unauthorized = 4401
        case forbidden = 4403
        case noHello = 4408
        case taken = 4409
        case tooLarge = 4413
        case tooMany = 4429
        case fault = 4500
        case notNow = 4503
        case slow = 4508
    }

    let code: Code
    let error: APIError

    /// Whether the client should come back.
    var reconnects: Bool {
        switch code {
        case .done, .notUnderstood, .forbidden, .taken, .tooLarge: false
        default: true
        }
    }

    init(_ code: Code, _ error: APIError) {
        self.code = code
        self.error = error
    }

    /// The end of the user token's validity.
    static let tokenEnded = LiveEnd(
        .unauthorized,
        APIError(
            .authenticationRequired, "the user token has expired",
            details: ["liveError": "tokenExpired"]))

    /// A frame that exceeds the length limit.
    static let tooLong = LiveEnd(
        .tooLarge,
        APIError(
            .quotaExceeded,
            "a frame may have at most \(LiveSession.frameBytes) bytes; \"hello\" at most "
                + "\(StrangerBytes.most)"))

    /// Creates the end for a refused `hello`, with the same words for programs as for later ends.
    init(refusing error: any Error) {
        var mapped = ErrorMapping(error).apiError
        if mapped.details["liveError"] == nil {
            switch mapped.code {
            case .authenticationRequired: mapped.details["liveError"] = "tokenExpired"
            case .authenticationFailed: mapped.details["liveError"] = "revoked"
            default: break
            }
        }
        switch mapped.code {
        case .authenticationRequired: self.init(.unauthorized, mapped)
        case .authenticationFailed, .accessDenied, .notFound: self.init(.forbidden, mapped)
        case .throttled, .quotaExceeded: self.init(.tooMany, mapped)
        case .internalError: self.init(.fault, mapped)
        case .tryAgainLater: self.init(.notNow, mapped)
        default: self.init(.notUnderstood, mapped)
        }
    }

    /// Returns the connection's last frame.
    func bye(uuid: String) -> LiveFrame {
        var object: JSONObject = ["type": "bye", "code": .integer(Int64(code.rawValue))]
        object.members += error.json(uuid: uuid).members
        object["reconnect"] = .bool(reconnects)
        return LiveFrame(object)
    }
}

extension Revocation {
    /// Returns whether a connection depends on what was revoked.
    func concerns(_ identity: LiveIdentity) -> Bool {
        switch self {
        case .session(let session, let container):
            identity.session == session && identity.settings.key == container
        case .sessions(let user, let container):
            !identity.isServer && identity.user == user && identity.settings.key == container
        case .key(let id, let container):
            identity.keyID == id && identity.settings.key == container
        case .userKeys(let container):
            !identity.isServer && identity.settings.key == container
        case .schema(let container): identity.settings.key == container
        }
    }

    /// The end of the connections that depend on what was revoked.
    var end: LiveEnd {
        if case .schema = self {
            return LiveEnd(.notNow, APIError(.tryAgainLater, reason, retryAfter: 1))
        }
        if case .userKeys = self {
            return LiveEnd(
                .unauthorized,
                APIError(
                    .authenticationRequired, reason, details: ["liveError": "tokenExpired"]))
        }
        return LiveEnd(
            .forbidden,
            APIError(.authenticationFailed, reason, details: ["liveError": "revoked"]))
    }
}

extension LiveEnd {
    /// Creates the end of a connection whose frames cannot be read.
    init(_ violation: WebSocketReader.Violation) {
        switch violation {
        case .tooLong: self = .tooLong
        case .broken(let reason): self.init(.notUnderstood, APIError(.badRequest, reason))
        }
    }
}
