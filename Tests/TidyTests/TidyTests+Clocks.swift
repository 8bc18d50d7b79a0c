import Testing

extension TidyTests {
    /// Every name under which the time of day can be read.
    static let wallClocks = [
        "Date()", "Date.now", "NSDate()", "timeIntervalSinceNow", "CFAbsoluteTime",
        "CLOCK_REALTIME", "CLOCK_TAI", "gettimeofday", "timespec_get", "time(nil)", "ftime(",
        "DispatchWallTime", "timeOfDay()",
    ]

    /// Where it is read: once for the relay and its commands, once for the simulator, which may
    /// share nothing with them.
    static let wallClockPlaces = [
        "Sources/RelayServer/World.swift", "Sources/Platform/TimeOfDay.swift",
        "Sources/GatewaySimulator/Settings/MachineClock.swift",
    ]

    @Test func `the time of day is read in two places`() {
        #expect(finds(of: Self.wallClocks) { !Self.wallClockPlaces.contains($0.path) } == [])
    }

    /// Names under which time that only goes on can be read, beside clocks that are handed in.
    static let steadyClocks = [
        "ContinuousClock.now", "SuspendingClock.now", "(at: .now", "DispatchTime.now",
        "NIODeadline.now", "systemUptime", "CLOCK_MONOTONIC", "CLOCK_BOOTTIME",
    ]

    /// What measures how long a thread of its own has waited or written, which no clock that
    /// suspends tasks can do; and a yardstick that runs before any relay does.
    static let threadFiles = [
        "BareInserts.swift", "CommitLedger.swift", "LogTrimmer.swift",
        "PostgresSession+Clock.swift", "WakeUp.swift",
    ]

    @Test func `waits are measured by the clock that comes in`() {
        let finds = finds(of: Self.steadyClocks) { file in
            !["belfry", "GatewaySimulator"].contains(file.room)
                && !Self.threadFiles.contains { file.path.hasSuffix("/\($0)") }
        }
        #expect(finds == [])
    }

    private func finds(
        of patterns: [String], where isMeant: (Repository.File) -> Bool
    ) -> [String] {
        Repository.sources.filter(isMeant).flatMap { file in
            file.numbered.filter { !isComment($0.line) }.flatMap { number, line in
                patterns.filter { line.has($0) }.map { place(file, number, $0) }
            }
        }
    }

    /// Where tasks give way on purpose: the tests' own way to wait, and tests that take turns with
    /// a writer.
    static let yieldingFiles = [
        "Tests/RelayTestKit/TestClock.swift", "Tests/MatchingTests/ConcurrencyTests.swift",
    ]

    /// How many turns are enough depends on the machine; a condition does not.
    @Test func `tests wait for conditions, and count no turns`() {
        var finds: [String] = []
        for file in Repository.swift
        where file.path.hasPrefix("Tests/") && !file.path.hasPrefix("Tests/TidyTests/")
            && !Self.yieldingFiles.contains(file.path)
        {
            for (number, line) in file.numbered where line.has("Task.yield()") {
                finds.append(place(file, number, "Task.yield(): use Turns"))
            }
        }
        #expect(finds == [])
    }
}
