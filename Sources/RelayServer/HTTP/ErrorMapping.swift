import ChangeSources
import HTTPTypes
import Logging
import NIOCore
import PredicateLanguage
import RelayModel
import Storage

/// A method that a path does not have.
struct RefusedMethod: Error, Sendable, Hashable {
    let method: String
    let allowed: String
    /// What to do about it.
    var hint = ""
}

/// A path that the relay does not have.
struct UnknownPath: Error, Sendable, Hashable {
    let path: String
}

/// An error of which its own room says what the wire says of it.
protocol AnsweredError: Error {
    /// The wire form.
    var apiError: APIError { get }
}

extension PredicateError: AnsweredError {}

/// What an error becomes on the wire and in the log: the only place that decides it.
struct ErrorMapping {
    /// The wire form.
    let apiError: APIError
    /// Header fields that go with it.
    var headers: HTTPFields = [:]
    /// `error` only where somebody has to look.
    var logLevel: Logger.Level = .debug
    /// Whether the wire form says that the log has it.
    var isPromised = false
    /// What the log says; more than the wire form for errors of the relay's own.
    var logReason: String

    /// Maps `error`.
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
            // It may be a secret that was mistyped, as the access log has it.
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

    /// A fault of the relay's own: the wire says nothing of its inside.
    private init(unexpected error: any Error) {
        apiError = APIError(
            .internalError, "an error of the relay's own; its log has it under this uuid")
        logLevel = .error
        isPromised = true
        logReason = String(reflecting: error)
    }

    /// What a source posted cannot be read; sources look at the status.
    private init(decoding error: DecodeError) {
        let code: ServerErrorCode =
            error.status == .tooLarge ? .quotaExceeded : .badRequest
        self.init(APIError(code, error.description, httpStatus: error.status.rawValue))
    }

    /// The store refuses or fails: the client shall come again, and when.
    private init(storage error: StorageError) {
        switch error {
        case .noRoom:
            apiError = APIError(
                .tryAgainLater, "the relay has no room left to store this durably",
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
                .tryAgainLater, "the relay's database cannot be used right now", retryAfter: 1)
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
    /// A quota is reached: which, what it is, and what is used of it.
    init(_ refusal: QuotaRefusal) {
        self.init(
            .quotaExceeded, refusal.description,
            details: [
                "quota": .string(refusal.quota.rawValue),
                "limit": .integer(Int64(refusal.limit)), "use": .integer(Int64(refusal.use)),
            ])
    }

    /// Changes are refused for a while: by which bound.
    init(bound: IntakeBound, reason: String) {
        // What only this caller does too much of is its own to slow down.
        let isOwn = bound == .share
        self.init(
            isOwn ? .throttled : .tryAgainLater, "changes are refused for a while: \(reason)",
            retryAfter: isOwn ? 1 : 5, details: ["bound": .string(bound.rawValue)])
    }
}
