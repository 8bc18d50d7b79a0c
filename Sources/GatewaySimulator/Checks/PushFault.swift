#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The reason why a push is refused: the refusal, and the broken rule in words.
struct PushFault: Error, Hashable {
    /// The refusal that the gateway answers with.
    var refusal: GatewayRefusal
    /// The explanation for a developer.
    ///
    /// It contains no device token and no secret.
    var explanation: String

    init(_ status: Int, _ reason: String, _ explanation: String, timestamp: Date? = nil) {
        refusal = GatewayRefusal(status: status, reason: reason, timestamp: timestamp)
        self.explanation = explanation
    }
}
