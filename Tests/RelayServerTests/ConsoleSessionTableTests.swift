import RelayModel
import Testing

@testable import RelayServer

/// The decisions about console sessions.
@Suite struct ConsoleSessionTableTests {
    private static let start = Timestamp(seconds: 1_000_000)

    private static func at(_ seconds: Int64) -> Timestamp {
        start.advanced(by: .seconds(seconds))
    }

    @Test func `a further session of a token ends the longest idle one`() {
        var table = ConsoleSessionTable(ConsoleSettings())
        for number in 0..<16 {
            #expect(table.begin("a\(number)", with: "a", at: Self.at(Int64(number))) != nil)
        }
        #expect(table.begin("b", with: "b", at: Self.at(20)) != nil)
        #expect(table.use("a0", at: Self.at(30)) != nil)
        #expect(table.begin("a16", with: "a", at: Self.at(40)) != nil)
        #expect(table.use("a1", at: Self.at(41)) == nil)
        for name in ["a0", "a2", "a16", "b"] {
            #expect(table.use(name, at: Self.at(41)) != nil, "\(name)")
        }
        #expect(table.count == 17)
    }

    @Test func `all tokens share a bound, and ended sessions make room`() {
        var table = ConsoleSessionTable(ConsoleSettings())
        for number in 0..<256 {
            #expect(table.begin("\(number)", with: "t\(number)", at: Self.start) != nil)
        }
        #expect(table.begin("more", with: "other", at: Self.at(3599)) == nil)
        #expect(table.begin("more", with: "other", at: Self.at(3600)) != nil)
        #expect(table.count == 1)
    }

    @Test func `a clock that is set back shortens no session`() {
        var table = ConsoleSessionTable(ConsoleSettings())
        _ = table.begin("a", with: "t", at: Self.start)
        #expect(table.use("a", at: Self.at(3000)) != nil)
        #expect(table.use("a", at: Self.at(-5000))?.usedAt == Self.at(3000))
        #expect(table.use("a", at: Self.at(6500)) != nil)
    }

    @Test func `the end of a token ends its sessions and codes only`() {
        var table = ConsoleSessionTable(ConsoleSettings())
        _ = table.begin("a", with: "t", at: Self.start)
        _ = table.begin("b", with: "u", at: Self.start)
        _ = table.keep(code: "c", for: "t", at: Self.start)
        table.endAll(with: "t")
        #expect(table.use("a", at: Self.start) == nil)
        #expect(table.use("b", at: Self.start) != nil)
        #expect(table.redeem(code: "c", at: Self.start) == nil)
    }

    @Test func `unused codes make room for others`() {
        var table = ConsoleSessionTable(ConsoleSettings())
        for number in 0...32 { _ = table.keep(code: "\(number)", for: "t", at: Self.start) }
        #expect(table.redeem(code: "0", at: Self.start) == nil)
        #expect(table.redeem(code: "1", at: Self.start) == "t")
        #expect(table.redeem(code: "1", at: Self.start) == nil)
    }

    @Test func `codes of one token displace none of another's`() {
        var table = ConsoleSessionTable(ConsoleSettings())
        _ = table.keep(code: "own", for: "u", at: Self.start)
        for number in 0...64 { _ = table.keep(code: "\(number)", for: "t", at: Self.start) }
        #expect(table.redeem(code: "own", at: Self.start) == "u")
        #expect(table.redeem(code: "64", at: Self.start) == "t")
    }
}
