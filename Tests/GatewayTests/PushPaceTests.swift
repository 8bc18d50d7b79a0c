import Testing

@testable import Gateway

/// A gateway that handles one push after another.
///
/// Each push takes a time, and is on its way before and after.
private struct ModelGateway {
    var underway: Duration
    var each: Duration
    private var free = Duration.zero
    private var pushes: [(sent: Duration, answered: Duration)] = []
    private var answers = 0

    init(underway: Duration, each: Duration) {
        self.underway = underway
        self.each = each
    }

    mutating func take(at now: Duration) {
        free = max(free, now + underway / 2) + each
        pushes.append((now, free + underway / 2))
    }

    /// Returns the next answer: its moment and its latency.
    mutating func answer() -> (at: Duration, latency: Duration)? {
        guard answers < pushes.count else { return nil }
        defer { answers += 1 }
        let push = pushes[answers]
        return (push.answered, push.answered - push.sent)
    }
}

@Suite struct PushPaceTests {
    /// Sends `count` pushes, as many at a time as the pace allows; returns the mean latency of the
    /// last quarter.
    @discardableResult
    private func run(
        _ count: Int, _ pace: inout PushPace, through gateway: inout ModelGateway,
        from start: Duration = .zero
    ) -> (end: Duration, latency: Duration) {
        var now = start
        var sum = Duration.zero
        for number in 0..<count {
            for _ in 0..<pace.room {
                pace.begin()
                gateway.take(at: now)
            }
            guard let (moment, latency) = gateway.answer() else { break }
            now = moment
            pace.end(after: latency)
            if number >= count - count / 4 { sum += latency }
        }
        return (now, sum / max(1, count / 4))
    }

    @Test func `a distant and quick gateway gets as many pushes as allowed`() {
        var pace = PushPace(most: 512)
        var gateway = ModelGateway(underway: .milliseconds(50), each: .microseconds(20))
        run(20_000, &pace, through: &gateway)
        #expect(pace.width == 512)
    }

    @Test(arguments: [1, 10, 50])
    func `a busy gateway's answers take about twice as long as its quickest`(underway: Int) {
        var pace = PushPace(most: 4096)
        var gateway = ModelGateway(
            underway: .milliseconds(underway), each: .microseconds(500))
        let latency = run(100_000, &pace, through: &gateway).latency
        // The quickest answer is measured with sixteen pushes on their way, at half a millisecond
        // each.
        let quickest = Duration.milliseconds(max(underway, 8))
        #expect(latency < quickest * 2 + .milliseconds(12))
        #expect(pace.width >= PushPace.least)
    }

    @Test func `a gateway that has become slower for good gets as many pushes as before`() {
        var pace = PushPace(most: 512)
        var gateway = ModelGateway(underway: .milliseconds(5), each: .microseconds(5))
        let (moment, _) = run(20_000, &pace, through: &gateway)
        #expect(pace.width == 512)
        gateway.underway = .milliseconds(80)
        run(200_000, &pace, through: &gateway, from: moment)
        #expect(pace.width == 512)
    }

    @Test(arguments: [1, 3, 16, 100])
    func `a small bound is kept, and always lets a push go`(most: Int) {
        var pace = PushPace(most: most)
        var gateway = ModelGateway(underway: .milliseconds(1), each: .milliseconds(1))
        for _ in 0..<500 {
            #expect(pace.room <= most)
            run(20, &pace, through: &gateway)
            #expect((1...most).contains(pace.width))
        }
    }

    @Test func `a push that never got a connection does not count`() {
        var pace = PushPace(most: 512)
        for _ in 0..<10_000 {
            pace.begin()
            pace.end(after: .zero)
        }
        #expect(pace.width == PushPace.first)
        #expect(pace.room == PushPace.first)
    }
}
