import Live
import RelayModel
import Storage

/// Who stands behind a connection, as its `hello` has proven.
struct LiveIdentity: Sendable {
    /// The settings of the container.
    let settings: ContainerSettings
    /// The user; for a server that names none, the identity of its key.
    let user: UserID
    /// Whether a user was named.
    let namesUser: Bool
    /// The device, which `by` names and which may be left out of what it does itself.
    let device: DeviceID?
    /// Whether it is a server of the application's own.
    let isServer: Bool
    /// The access key.
    let keyID: String
    /// The session of the user's token.
    let session: UUIDBytes?
    /// When the user's token ends.
    var endsAt: Timestamp?
    /// How records are written.
    let form: LiveForm
    /// Whether a server signs as itself, and so is shown the public database alone.
    var isSigned = false

    /// What it may read.
    var reader: LiveReader { isServer ? .server : .user(user) }

    /// What stays of it under another token of the same user: the device, and how records are
    /// written.
    func renewed(by other: LiveIdentity) -> LiveIdentity {
        LiveIdentity(
            settings: other.settings, user: user, namesUser: namesUser, device: device,
            isServer: isServer, keyID: other.keyID, session: other.session, endsAt: other.endsAt,
            form: form, isSigned: other.isSigned)
    }
}

/// Why a connection ends, with the code of RFC 6455 or of the application's range.
struct LiveEnd: Error, Sendable {
    /// The codes by which programs tell ends apart (docs/live.md).
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

    /// Whether a client should come back.
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

    /// The user token has ended.
    static let tokenEnded = LiveEnd(
        .unauthorized,
        APIError(
            .authenticationRequired, "the user token has ended",
            details: ["liveError": "tokenExpired"]))

    /// A frame is longer than one may be.
    static let tooLong = LiveEnd(
        .tooLarge,
        APIError(
            .quotaExceeded,
            "a frame has at most \(LiveSession.frameBytes) bytes; \"hello\" \(StrangerBytes.most)"))

    /// What refuses a `hello`, for programs by the words that end a connection later.
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

    /// The last frame.
    func bye(uuid: String) -> LiveFrame {
        var object: JSONObject = ["type": "bye", "code": .integer(Int64(code.rawValue))]
        object.members += error.json(uuid: uuid).members
        object["reconnect"] = .bool(reconnects)
        return LiveFrame(object)
    }
}

extension Revocation {
    /// Whether a connection stands on what was revoked.
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

    /// What those are told who have to go.
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
    /// What ends a connection whose frames cannot be read.
    init(_ violation: WebSocketReader.Violation) {
        switch violation {
        case .tooLong: self = .tooLong
        case .broken(let reason): self.init(.notUnderstood, APIError(.badRequest, reason))
        }
    }
}
