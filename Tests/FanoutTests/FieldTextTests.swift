import RelayModel
import Testing

@testable import Fanout

@Suite struct FieldTextTests {
    @Test(
        arguments: [
            (1907, "1907"), (-0.0, "0"), (0.1, "0.1"), (1e300, "1e+300"), (-2.5, "-2.5"),
            (9_007_199_254_740_992, "9007199254740992"),
        ] as [(Double, String)])
    func `numbers read as people write them`(number: Double, text: String) {
        #expect(FieldText.digits(of: number) == text)
    }
}
