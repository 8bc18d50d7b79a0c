import ArgumentParser
import FoundationEssentials
import Matching
import PredicateLanguage
import RelayModel

/// `belfry match`: shows which of a file's subscriptions each of a file's changes fires.
struct MatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "match",
        abstract: "Match a file of changes against a file of subscriptions, and measure it.",
        discussion: """
            Both files hold one JSON object a line. The command leaves out a subscription that is \
            refused: it reports the first twenty on standard error, counts the others, and exits \
            with 1. Of several lines with one id, the last counts. It prints the measurements as \
            JSON on standard output: changesPerSecond and buildSeconds by this thread's processor \
            time, so that a busy machine does not count (changesPerWallSecond beside it); \
            microseconds of single changes by the clock on the wall. The decoding of the changes \
            is measured separately.
            """)

    /// What decides which subscriptions fire.
    enum Engine: String, ExpressibleByArgument, CaseIterable {
        /// The index.
        case index
        /// The slow evaluator, which tests each subscription.
        case reference
    }

    @Option(help: ArgumentHelp("The subscriptions.", valueName: "FILE.jsonl"))
    var subscriptions: String

    @Option(help: ArgumentHelp("The changes.", valueName: "FILE.jsonl"))
    var changes: String

    @Option(help: ArgumentHelp("Where to write what each change fires.", valueName: "OUT.jsonl"))
    var matches: String?

    @Option(name: .customLong("repeat"), help: "How often to match all changes for the throughput.")
    var repetitions = 1

    @Option(help: "index, or reference for the slow evaluator.")
    var engine = Engine.index

    mutating func validate() throws {
        guard (1...1_000_000).contains(repetitions) else {
            throw ValidationError("--repeat must be from 1 to 1000000")
        }
    }

    mutating func run() throws {
        try CommandFailure.toldAtOnce { try match() }
    }

    private func match() throws {
        let (ids, saved, refused) = try readSubscriptions()
        let (names, list, decoding) = try readChanges()
        var matcher: any ChangeMatcher
        let start = ThreadTime.seconds
        switch engine {
        case .index: matcher = IndexMatcher(saved)
        case .reference: matcher = try ReferenceMatcher(saved)
        }
        let build = ThreadTime.seconds - start
        matcher.prepare(list)
        var report = MatchReport(subscriptions: saved.count, refused: refused, changes: list.count)
        report.buildSeconds = build
        report.bytesPerSubscription = Double(matcher.bytes) / Double(max(saved.count, 1))
        report.parseSeconds = decoding.parse / .seconds(1)
        report.decodeMicroseconds = matcher.decodeMicroseconds(list)
        var output = try matches.map(MatchOutput.init)
        try measure(&matcher, list, names, ids, &output, &report)
        try output?.close()
        print(report.json.text)
        if refused > 0 { throw ExitCode.failure }
    }

    private func measure(
        _ matcher: inout any ChangeMatcher, _ changes: [RecordChange], _ names: [JSONValue],
        _ ids: [LineID], _ output: inout MatchOutput?, _ report: inout MatchReport
    ) throws {
        let clock = ContinuousClock()
        var serials: [UInt64] = []
        var latencies: [Double] = []
        latencies.reserveCapacity(changes.count)
        for index in changes.indices {
            let before = clock.now
            matcher.match(index, into: &serials)
            latencies.append((clock.now - before) / .microseconds(1))
            report.matches += serials.count
            try output?.write(names[index], serials.map { ids[Int($0)] })
        }
        let start = (wall: clock.now, processor: ThreadTime.seconds)
        for _ in 0..<repetitions {
            for index in changes.indices { matcher.match(index, into: &serials) }
        }
        report.finish(
            latencies: latencies, seconds: ThreadTime.seconds - start.processor,
            wallSeconds: (clock.now - start.wall) / .seconds(1), count: changes.count * repetitions)
    }

    private func readSubscriptions() throws -> ([LineID], [IndexedSubscription], Int) {
        var lines: [SubscriptionLine] = []
        var refused = 0
        for (number, bytes) in try LineReader(path: subscriptions).enumerated() {
            if bytes.isEmpty { continue }
            let place = "\(subscriptions):\(number + 1)"
            do {
                lines.append(try SubscriptionLine(bytes, place))
            } catch {
                refused += 1
                let failure = error as? PredicateLanguage.PredicateError
                let hint = failure?.hint.map { "; \($0)" } ?? ""
                if refused <= Self.refusalsShown {
                    try Self.complain("\(place): \(error)\(hint)")
                }
            }
        }
        if refused > Self.refusalsShown {
            try Self.complain(
                "\(subscriptions): \(refused - Self.refusalsShown) more subscriptions are refused")
        }
        lines = Self.lastOfEach(lines)
        var saved: [IndexedSubscription] = []
        saved.reserveCapacity(lines.count)
        for (serial, line) in lines.enumerated() {
            var subscription = line.subscription
            subscription.serial = UInt64(serial)
            saved.append(subscription)
        }
        return (lines.map(\.id), saved, refused)
    }

    /// The maximum number of refusals to print.
    ///
    /// More would say nothing new, and would bury other output.
    private static let refusalsShown = 20

    private static func complain(_ text: String) throws {
        try StandardStreams.write(Array("\(text)\n".utf8), .error)
    }

    /// Returns the lines by ascending ID; the last of several lines with one ID replaces the
    /// others.
    private static func lastOfEach(_ lines: [SubscriptionLine]) -> [SubscriptionLine] {
        // The sort is stable.
        let sorted = lines.sorted { $0.id < $1.id }
        return sorted.indices.compactMap { index in
            let isLast = index + 1 == sorted.count || sorted[index].id < sorted[index + 1].id
            return isLast ? sorted[index] : nil
        }
    }

    private func readChanges() throws -> ([JSONValue], [RecordChange], (parse: Duration, Int)) {
        let clock = ContinuousClock()
        var names: [JSONValue] = []
        var list: [RecordChange] = []
        let start = clock.now
        for (number, bytes) in try LineReader(path: changes).enumerated() where !bytes.isEmpty {
            let place = "\(changes):\(number + 1)"
            do {
                let line = try ChangeLine(bytes, place)
                names.append(line.id)
                list.append(line.change)
            } catch {
                throw MatchLineError(place: place, reason: "\(error)")
            }
        }
        return (names, list, (clock.now - start, list.count))
    }
}
