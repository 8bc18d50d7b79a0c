import RelayModel
import Storage
import Testing

@testable import RelayServer

/// How errors are mapped to HTTP answers.
@Suite struct ErrorMappingTests {
    static let refusals: [(error: StorageError, status: Int, bound: String)] = [
        (.overloaded("50 changes are waiting to be written"), 429, "waiting"),
        (.noRoom("the disk is full"), 507, "disk"),
        (.bounded(.logLag, reason: "too many entries"), 503, "logLag"),
        (.bounded(.database, reason: "too large a database"), 503, "database"),
        (.bounded(.share, reason: "more than its share"), 429, "share"),
    ]

    /// The name of the bound is that of the metric that counts refusals (docs/guarantees.md,
    /// promise 12).
    @Test(arguments: refusals)
    func `a refusal by a bound names it and says when to retry`(
        error: StorageError, status: Int, bound: String
    ) {
        let answer = ErrorMapping(error).apiError
        #expect(answer.httpStatus == status)
        #expect(answer.details["bound"] == .string(bound))
        #expect(answer.retryAfter != nil)
    }
}
