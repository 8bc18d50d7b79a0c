import ChangeSources
import HTTPTypes
import Logging
import NIOCore
import PredicateLanguage
import RelayModel
import Storage

/// A method that a path does not support.
struct RefusedMethod: Error, Sendable, Hashable {
    let method: String
    let allowed: String
    /// A hint on what to do about it.
    var hint = ""
}

/// A path that the relay does not have.
struct UnknownPath: Error, Sendable, Hashable {
    let path: String
}

/// An error that defines its own form on the wire.
protocol AnsweredError: Error {
    /// Its form on the wire.
    var apiError: APIError { get }
}

extension PredicateError: AnsweredError {}

/// The form of an error on the wire and in the log; this is the only place that decides it.
struct ErrorMapping {
    /// The form on the wire.
    let apiError: APIError
    /// Header fields of the answer.
    var headers: HTTPFields = [:]
    /// The log level: `error` or higher only if an operator has to act.
    var logLevel: Logger.Level = .debug
    /// Whether the form on the wire promises that the log has the error.
    var isPromised = false
    /// The reason in the log, which says more than the answer for internal errors.
    var logReason: String

    /// Maps an error.
    init(_ error: any Error) {
        switch error {
        case let error as APIError: self.init(error)
        case let error as JSONContractError: self.init(APIError(.badRequest, error.description))
        case let error as JSONSyntaxError: self.init(APIError(.badRequest, error.description))
        case let error as any AnsweredError: self.init(error.apiError)
        case let error as VerificationError:
            self.init(APIError(.authenticationFailed, error.description))
        case let error as DecodeError: self.init(decoding: error)
        case let error as RefusedMethod:
            self.init(
                APIError(
                    .badRequest,
                    "\(error.method) is not allowed here; allowed: \(error.allowed)\(error.hint)",
                    httpStatus: 405))
            headers[.allow] = error.allowed
        case let error as UnknownPath:
            self.init(APIError(.notFound, "there is no call at \(error.path)"))
            // The path may be a mistyped secret, so it is not logged, as in the access log.
            logReason = "there is no such call"
        case let error as StorageError: self.init(storage: error)
        case is NIOTooManyBytesError:
            self.init(APIError(.quotaExceeded, "the body is too large"))
        case is CancellationError:
            self.init(
                APIError(.tryAgainLater, "the relay is shutting down", retryAfter: 5))
        default: self.init(unexpected: error)
        }
    }

    private init(_ error: APIError) {
        apiError = error
        logReason = error.reason
    }

    /// Maps an internal error; the answer says nothing about the relay's inside.
    private init(unexpected error: any Error) {
        apiError = APIError(
            .internalError,
            "an internal error of the relay; its log has the details under this uuid")
        logLevel = .error
        isPromised = true
        logReason = String(reflecting: error)
    }

    /// Maps a source's request that cannot be decoded; sources act on the status.
    private init(decoding error: DecodeError) {
        let code: ServerErrorCode =
            error.status == .tooLarge ? .quotaExceeded : .badRequest
        self.init(APIError(code, error.description, httpStatus: error.status.rawValue))
    }

    /// Maps an error of the store, which may say when the client should retry.
    private init(storage error: StorageError) {
        switch error {
        case .noRoom:
            apiError = APIError(
                .tryAgainLater, "the relay has no disk space left to store this durably",
                retryAfter: 60, httpStatus: 507,
                details: ["bound": .string(IntakeBound.disk.rawValue)])
            logLevel = .error
        case .overloaded:
            apiError = APIError(
                .throttled, "too much is waiting to be written", retryAfter: 1,
                details: ["bound": .string(IntakeBound.waiting.rawValue)])
            logLevel = .warning
        case .unavailable:
            apiError = APIError(
                .tryAgainLater, "the relay's database is temporarily unavailable", retryAfter: 1)
            logLevel = .warning
        case .bounded(let bound, let reason):
            apiError = APIError(bound: bound, reason: reason)
            logLevel = .warning
        case .locked, .closed, .progressMoved, .unreadable:
            apiError = APIError(
                .tryAgainLater, "the relay's store is not available", retryAfter: 5)
            logLevel = .error
        case .overQuota(let refusal):
            apiError = APIError(refusal)
            logLevel = .debug
        case .unknownContainer(let key):
            apiError = APIError(
                .notFound,
                "there is no container \(key.container) in \(key.environment.rawValue)")
            logLevel = .debug
        case .newerSchema, .damaged, .lost, .missing, .missingSchema, .foreignSchema, .inaccessible,
            .secrets, .unsafeSetting:
            apiError = APIError(
                .internalError, "the relay's store cannot be used; its log says why")
            logLevel = .critical
        }
        logReason = String(describing: error)
    }
}

extension APIError {
    /// Creates the error for a quota that is reached, with its limit and its use.
    init(_ refusal: QuotaRefusal) {
        self.init(
            .quotaExceeded, refusal.description,
            details: [
                "quota": .string(refusal.quota.rawValue),
                "limit": .integer(Int64(refusal.limit)), "use": .integer(Int64(refusal.use)),
            ])
    }

    /// Creates the error for changes that are refused for a while, with the bound that is reached.
    init(bound: IntakeBound, reason: String) {
        // If only this caller sends too much, it is told to slow down.
        let isOwn = bound == .share
        self.init(
            isOwn ? .throttled : .tryAgainLater, "changes are refused for a while: \(reason)",
            retryAfter: isOwn ? 1 : 5, details: ["bound": .string(bound.rawValue)])
    }
}
