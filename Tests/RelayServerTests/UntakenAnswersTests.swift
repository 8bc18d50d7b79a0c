import Testing

@testable import RelayServer

/// Which connections end if clients ask for more than they take.
@Suite struct UntakenAnswersTests {
    private static func address(_ text: String) throws -> ClientAddress {
        try #require(ClientAddress(text: text))
    }

    @Test func `of the address that leaves most, the connection that has waited longest ends`()
        throws
    {
        let (greedy, modest) = (try Self.address("10.0.0.1"), try Self.address("10.0.0.2"))
        var answers = UntakenAnswers<Int>(most: 100)
        #expect(answers.note(20, of: 0, from: modest) == [])
        #expect(answers.note(30, of: 1, from: greedy) == [])
        #expect(answers.note(30, of: 2, from: greedy) == [])
        // A part that was added to an answer makes it no newer.
        #expect(answers.note(31, of: 1, from: greedy) == [])
        #expect(answers.note(30, of: 3, from: greedy) == [1])
        #expect(answers.bytes == 80)
        #expect(answers.note(90, of: 4, from: modest) == [0, 2, 3])
        #expect(answers.bytes == 90)
    }

    @Test func `one answer may have any length`() throws {
        var answers = UntakenAnswers<Int>(most: 100)
        #expect(answers.note(1000, of: 0, from: nil) == [])
        #expect(answers.note(1, of: 1, from: nil) == [0])
        #expect(answers.bytes == 1)
    }

    @Test func `what is taken, or whose connection is closed, does not count`() throws {
        var answers = UntakenAnswers<Int>(most: 100)
        #expect(answers.note(60, of: 0, from: nil) == [])
        #expect(answers.note(0, of: 0, from: nil) == [])
        #expect(answers.note(90, of: 1, from: nil) == [])
        answers.forget(1)
        answers.forget(1)
        #expect(answers.bytes == 0)
        #expect(answers.note(100, of: 2, from: nil) == [])
    }

    @Test func `only large answers of a connection are counted`() {
        var bytes = AnswerBytes()
        #expect(bytes.add(40_000) == nil)
        #expect(bytes.end() == 40_000)
        #expect(bytes.add(40_000) == 80_000)
        #expect(bytes.add(1000) == 81_000)
        #expect(bytes.end() == 41_000)
        #expect(bytes.end() == 0)
        #expect(bytes.take(40_000) == 0)
        #expect(bytes.take(41_000) == nil)
    }
}
