import Testing

@testable import Gateway

@Suite struct SilenceToleranceTests {
    private var tolerance = SilenceTolerance(least: .seconds(15), most: .seconds(75))

    @Test
    mutating func `each connection that is given up doubles the tolerance, up to the maximum`() {
        tolerance.giveUp(after: .seconds(15))
        #expect(tolerance.current == .seconds(30))
        // Giving up another connection after the same time changes nothing.
        tolerance.giveUp(after: .seconds(15))
        #expect(tolerance.current == .seconds(30))
        tolerance.giveUp(after: .seconds(30))
        tolerance.giveUp(after: .seconds(60))
        #expect(tolerance.current == .seconds(75))
    }

    @Test mutating func `a slow answer keeps the tolerance at twice its time`() {
        tolerance.giveUp(after: .seconds(15))
        tolerance.answer(after: .seconds(20))
        #expect(tolerance.current == .seconds(40))
        tolerance.answer(after: .seconds(50))
        #expect(tolerance.current == .seconds(75))
    }

    @Test mutating func `a quick answer restores the minimum`() {
        tolerance.giveUp(after: .seconds(15))
        tolerance.answer(after: .milliseconds(50))
        #expect(tolerance.current == .seconds(15))
        tolerance.answer(after: .milliseconds(50))
        #expect(tolerance.current == .seconds(15))
    }
}
