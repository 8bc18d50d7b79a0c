import RelayModel
import Testing

/// The words in which reasons to wait are stored must not change.
@Suite struct WaitReasonTests {
    static let words: [(String, WaitReason)] = [
        ("no answer yet", .noAnswerYet),
        ("too many pushes for this device", .deviceHold),
        ("enough background pushes for this device in this hour", .devicePace),
        ("ServiceUnavailable", .said("ServiceUnavailable")),
        ("", .said("")),
        ("\"Quoted\"", .said("\"Quoted\"")),
        ("expired", .redriven(after: .expiration, cause: "")),
        ("expired: no connection", .redriven(after: .expiration, cause: "no connection")),
        (
            "attempts used up: BadGateway", .redriven(after: .attempts, cause: "BadGateway")
        ),
        ("expired early", .said("expired early")),
    ]

    @Test(arguments: words) func `the stored form of each reason is unchanged`(
        text: String, reason: WaitReason
    ) {
        #expect(WaitReason(stored: text) == reason)
        #expect(reason.stored == text)
        #expect(reason.text == text)
    }

    @Test func `a gateway's answer cannot pose as a reason of the relay`() {
        for word in Self.words.map(\.0) {
            for text in [word, "\"\(word)\"", "\"\"\(word)\"\""] {
                let said = WaitReason.said(text)
                #expect(WaitReason(stored: said.stored) == said)
                #expect(said.text == text)
                #expect(!said.isPace)
            }
        }
    }

    @Test func `a redriven delivery has its former end once in its reason`() {
        let reason = WaitReason(stored: "expired: attempts used up: no connection")
        #expect(reason == .redriven(after: .expiration, cause: "no connection"))
        #expect(DeliveryBound.attempts.reason(reason.cause) == "attempts used up: no connection")
        #expect(DeliveryBound.expiration.reason(WaitReason(stored: "expired").cause) == "expired")
    }

    @Test func `two reasons concern the pace of a device`() {
        let paced = Self.words.map(\.1).filter(\.isPace)
        #expect(paced == [.deviceHold, .devicePace])
    }
}
