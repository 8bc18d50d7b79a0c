/// CloudKit's error codes, each with its HTTP status (CloudKit Web Services Reference, "Error
/// Codes").
///
/// Clients recognise only these fourteen, so no code may be added.
public enum ServerErrorCode: String, Sendable, Hashable, CaseIterable {
    /// No permission for the endpoint, record, zone or database.
    case accessDenied = "ACCESS_DENIED"
    /// An atomic batch failed.
    case atomicError = "ATOMIC_ERROR"
    /// The credentials were refused.
    case authenticationFailed = "AUTHENTICATION_FAILED"
    /// A signed-in user is needed.
    case authenticationRequired = "AUTHENTICATION_REQUIRED"
    /// The request is not valid.
    case badRequest = "BAD_REQUEST"
    /// The object has changed in the meantime.
    case conflict = "CONFLICT"
    /// The object exists already.
    case exists = "EXISTS"
    /// An internal fault of the relay.
    case internalError = "INTERNAL_ERROR"
    /// The object does not exist.
    case notFound = "NOT_FOUND"
    /// A quota or size limit is exceeded.
    case quotaExceeded = "QUOTA_EXCEEDED"
    /// Too many requests.
    case throttled = "THROTTLED"
    /// The relay cannot serve the request now.
    case tryAgainLater = "TRY_AGAIN_LATER"
    /// A reference is not valid.
    case validatingReferenceError = "VALIDATING_REFERENCE_ERROR"
    /// The zone does not exist.
    case zoneNotFound = "ZONE_NOT_FOUND"

    /// The HTTP status of a response that fails as a whole with this code.
    public var httpStatus: Int {
        switch self {
        case .badRequest, .atomicError: 400
        case .authenticationFailed: 401
        case .accessDenied: 403
        case .notFound, .zoneNotFound: 404
        case .conflict, .exists: 409
        case .validatingReferenceError: 412
        case .quotaExceeded: 413
        case .authenticationRequired: 421
        case .throttled: 429
        case .internalError: 500
        case .tryAgainLater: 503
        }
    }
}

/// An error in the form that clients see, for a whole request or for one of its items.
public struct APIError: Error, Sendable, Hashable {
    /// CloudKit's code.
    public var code: ServerErrorCode
    /// What is wrong, where, and what is allowed.
    public var reason: String
    /// The number of seconds after which a repetition may succeed; `nil` means that it will not.
    public var retryAfter: Int64?
    /// The HTTP status, which may differ from the code's own.
    public var httpStatus: Int
    /// Further members of the wire form, such as `predicateError`.
    public var details: JSONObject

    /// Creates an error; its status is the code's own unless `httpStatus` is given.
    public init(
        _ code: ServerErrorCode, _ reason: String, retryAfter: Int64? = nil,
        httpStatus: Int? = nil, details: JSONObject = [:]
    ) {
        self.code = code
        self.reason = reason
        self.retryAfter = retryAfter
        self.httpStatus = httpStatus ?? code.httpStatus
        self.details = details
    }

    /// Returns the wire form; `uuid` identifies this occurrence in the logs.
    public func json(uuid: String) -> JSONObject {
        var object: JSONObject = [
            "uuid": .string(uuid), "serverErrorCode": .string(code.rawValue),
            "reason": .string(reason),
        ]
        object["retryAfter"] = retryAfter.map { .integer($0) }
        object.members.append(contentsOf: details.members)
        return object
    }
}
