import RelayModel
import Testing

@testable import Fanout

/// The sentences in which the end of a delivery is explained to people.
@Suite struct DeliveryEndTests {
    @Test(
        arguments: [
            ("BadTopic", 400, "the gateway refused it: 400 BadTopic"),
            (
                "expired: ServiceUnavailable", 503,
                "it expired before it was delivered; the gateway's last answer was 503 "
                    + "ServiceUnavailable"
            ),
            (
                "attempts used up: InternalServerError", 500,
                "its attempts were used up before it was delivered; the gateway's last answer was "
                    + "500 InternalServerError"
            ),
            ("expired: held: quiet hours", 0, "it was not delivered: expired: held: quiet hours"),
        ] as [(String, UInt16, String)])
    func `the bound that ended a delivery is not reported as the gateway's answer`(
        reason: String, status: UInt16, says: String
    ) {
        #expect(DeliveryEnd(reason, status: status).says == says)
    }

    @Test func `the last attempt tells the gateway's answer and what ended the delivery`() {
        let end = DeliveryEnd("expired: ServiceUnavailable", status: 503)
        #expect(end.answer == "503 ServiceUnavailable, and it expired")
        #expect(end.saysOfOther == "was not delivered: expired, after 503 ServiceUnavailable")
        #expect(DeliveryEnd("BadTopic", status: 400).answer == "400 BadTopic")
    }
}
