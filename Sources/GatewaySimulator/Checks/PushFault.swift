#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What is wrong with a push: the refusal, and the rule that it broke in words.
struct PushFault: Error, Hashable {
    /// What is answered.
    var refusal: GatewayRefusal
    /// What a developer needs to know; it names no device token and no secret.
    var explanation: String

    init(_ status: Int, _ reason: String, _ explanation: String, timestamp: Date? = nil) {
        refusal = GatewayRefusal(status: status, reason: reason, timestamp: timestamp)
        self.explanation = explanation
    }
}
