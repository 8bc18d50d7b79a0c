import Testing

extension TidyTests {
    /// The ways to read the time of day.
    static let wallClocks = [
        "Date()", "Date.now", "NSDate()", "timeIntervalSinceNow", "CFAbsoluteTime",
        "CLOCK_REALTIME", "CLOCK_TAI", "gettimeofday", "timespec_get", "time(nil)", "ftime(",
        "DispatchWallTime", "timeOfDay()",
    ]

    /// The files that may read the time of day.
    ///
    /// There is one for the relay and its commands, and one for the simulator, which may share no
    /// code with them.
    static let wallClockPlaces = [
        "Sources/RelayServer/World.swift", "Sources/Platform/TimeOfDay.swift",
        "Sources/GatewaySimulator/Settings/MachineClock.swift",
    ]

    @Test func `the time of day is read in two files only`() {
        #expect(finds(of: Self.wallClocks) { !Self.wallClockPlaces.contains($0.path) } == [])
    }

    /// The ways to read monotonic time, besides clocks that are passed in.
    static let steadyClocks = [
        "ContinuousClock.now", "SuspendingClock.now", "(at: .now", "DispatchTime.now",
        "NIODeadline.now", "systemUptime", "CLOCK_MONOTONIC", "CLOCK_BOOTTIME",
    ]

    /// Files that measure how long a thread of its own waited or wrote, which a clock for tasks
    /// cannot do.
    ///
    /// One is a benchmark that runs before any relay does.
    static let threadFiles = [
        "BareInserts.swift", "CommitLedger.swift", "LogTrimmer.swift",
        "PostgresSession+Clock.swift", "WakeUp.swift",
    ]

    @Test func `waits are measured by the clock that is passed in`() {
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

    /// Files in which tasks yield on purpose.
    ///
    /// These are the tests' own way to wait, and tests that alternate with a writer.
    static let yieldingFiles = [
        "Tests/RelayTestKit/TestClock.swift", "Tests/MatchingTests/ConcurrencyTests.swift",
    ]

    /// How many yields are enough depends on the machine; a condition does not.
    @Test func `tests wait for conditions and do not count yields`() {
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
