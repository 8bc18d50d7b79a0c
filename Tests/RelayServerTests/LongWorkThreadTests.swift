import Foundation
import RelayTestKit
import Testing

@testable import RelayServer

@Suite struct LongWorkThreadTests {
    /// How much the thread on which this runs gives way.
    @concurrent private func niceness() async -> Int32 {
        getpriority(numericCast(PRIO_PROCESS.rawValue), 0)
    }

    @Test func `long work is done on a thread that gives way, and what follows is not`() async {
        let before = await niceness()
        let thread = LongWorkThread(name: "belfry.test")
        for _ in 0..<3 {
            let inside = await withTaskExecutorPreference(thread) {
                await Turns.pass(20)
                return await niceness()
            }
            #expect(inside == before + 5)
            #expect(await niceness() == before)
        }
    }

    @Test func `what was begun is done though nobody holds the thread any more`() async {
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
