import Foundation
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import RelayServer

@Suite struct LongWorkThreadTests {
    /// Returns the nice value of the thread on which this runs.
    @concurrent private func niceness() async -> Int32 {
        getpriority(numericCast(PRIO_PROCESS.rawValue), 0)
    }

    @Test func `long work runs on a thread of low priority, and what follows does not`() async {
        let before = await niceness()
        let thread = LongWorkThread(name: "belfry.test")
        for _ in 0..<3 {
            let inside = await withTaskExecutorPreference(thread) {
                await Turns.pass(20)
                return await niceness()
            }
            #expect(inside == before + 10)
            #expect(await niceness() == before)
        }
    }

    private static func request(_ body: String) -> RelayRequest {
        RelayRequest(
            method: "POST", target: "/", body: Array(body.utf8), uuid: "1",
            receivedAt: Fixtures.moment)
    }

    @Test func `a client's long body is parsed ahead, and its errors are reported later`()
        async throws
    {
        let bodies = LongBodies(
            line: ReaderLine(turns: 1), thread: LongWorkThread(name: "belfry.test"))
        func parsed(_ body: String) async throws -> RelayRequest {
            try await bodies.parsed(
                Self.request(body), of: Fixtures.container, by: .strangers)
        }
        let short = try await parsed(#"{"a": 1}"#)
        #expect(short.json == nil)
        #expect(try short.jsonBody().integer("a") == 1)
        let spaces = String(repeating: " ", count: LongBodies.least)
        let long = try await parsed(#"{"a": 2}"# + spaces)
        #expect(try long.json?.get() == ["a": 2])
        #expect(try long.jsonBody().integer("a") == 2)
        let broken = try await parsed(#"{"a": "# + spaces)
        #expect(throws: JSONSyntaxError.self) { try broken.jsonBody() }
    }

    /// Names with marks are composed before they are compared, which takes twenty times as long as
    /// reading them.
    @Test func `a body with many marks is long before another is`() async throws {
        let bodies = LongBodies(
            line: ReaderLine(turns: 1), thread: LongWorkThread(name: "belfry.test"))
        func isParsedAhead(_ letter: String, _ count: Int) async throws -> Bool {
            let name = String(repeating: letter, count: count)
            let request = Self.request("{\"\(name)\": 1}")
            let parsed = try await bodies.parsed(request, of: Fixtures.container, by: .strangers)
            return parsed.json != nil
        }
        #expect(try await isParsedAhead("a\u{301}", 4_000))
        #expect(try await !isParsedAhead("a\u{301}", 500))
        #expect(try await !isParsedAhead("a", 60_000))
        #expect(try await !isParsedAhead("本", 20_000))
    }

    @Test func `long conditions of a body are parsed on the thread of low priority`()
        async throws
    {
        let bodies = LongBodies(
            line: ReaderLine(turns: 1), thread: LongWorkThread(name: "belfry.test"))
        func read(_ count: Int) async throws -> Int32 {
            try await bodies.reading(
                Self.request(String(repeating: " ", count: count)), of: Fixtures.container,
                by: .strangers
            ) {
                getpriority(numericCast(PRIO_PROCESS.rawValue), 0)
            }
        }
        let before = await niceness()
        #expect(try await read(LongBodies.leastOfConditions) == before)
        #expect(try await read(LongBodies.leastOfConditions + 1) == before + 10)
    }

    @Test func `long requests are processed on the thread of low priority with their waits`()
        async throws
    {
        let bodies = LongBodies(
            line: ReaderLine(turns: 1), thread: LongWorkThread(name: "belfry.test"))
        func work(_ count: Int) async throws -> Int32 {
            try await bodies.working(
                Self.request(String(repeating: " ", count: count)), of: Fixtures.container,
                by: .server
            ) {
                await Turns.pass(20)
                return getpriority(numericCast(PRIO_PROCESS.rawValue), 0)
            }
        }
        let before = await niceness()
        #expect(try await work(LongBodies.leastOfConditions) == before)
        #expect(try await work(LongBodies.leastOfConditions + 1) == before + 10)
        #expect(await niceness() == before)
    }

    @Test func `answers of many records are formed on the thread of low priority`() async throws {
        let answers = LongAnswers(thread: LongWorkThread(name: "belfry.test"))
        func form(_ records: Int) async throws -> Int32 {
            try await answers.forming(records) {
                getpriority(numericCast(PRIO_PROCESS.rawValue), 0)
            }
        }
        let before = await niceness()
        #expect(try await form(LongAnswers.leastRecords - 1) == before)
        #expect(try await form(LongAnswers.leastRecords) == before + 10)
        await #expect(throws: CancellationError.self) {
            try await answers.forming(LongAnswers.leastRecords) { () throws -> Int in
                throw CancellationError()
            }
        }
    }

    @Test func `a long answer has the body that a short one has`() async throws {
        let answers = LongAnswers(thread: LongWorkThread(name: "belfry.test"))
        for count in [1, LongAnswers.leastBytes] {
            let json: JSONValue = ["text": .string(String(repeating: "x", count: count))]
            #expect(await answers.answer(json).body == json.utf8)
        }
    }

    @Test func `begun work is finished even if the thread is released`() async {
        var thread: LongWorkThread? = LongWorkThread(name: "belfry.test")
        let works = (0..<8).map { number in
            Task(executorPreference: thread) {
                await Turns.pass(20)
                return number
            }
        }
        weak let left = thread
        thread = nil
        var sum = 0
        for work in works { sum += await work.value }
        #expect(sum == 28)
        while left != nil { await Turns.pass(20) }
    }
}
