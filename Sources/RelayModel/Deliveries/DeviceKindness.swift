/// When a device does not want to be disturbed.
public struct DeviceKindness: Sendable, Hashable {
    /// Hours of its day in which nothing is to show, sound or badge, unless it is urgent.
    public var quietHours: QuietHours?
    /// Whether it is not to be pushed to while it is connected and told there.
    public var isUnlessConnected = false

    /// Spares nobody.
    public init() {}

    /// Whether it holds no push back.
    public var isEmpty: Bool { self == DeviceKindness() }
}

/// Hours of the day, by a device's own clock.
public struct QuietHours: Sendable, Hashable {
    /// The name of the time zone, as the IANA's database has it.
    public var timeZone: String
    /// The minute of the day with which they begin.
    public var from: Int
    /// The minute of the day with which they have ended; before ``from`` it is the next day's.
    public var until: Int

    /// The hours that `now` lies in, from their beginning until before their end; `nil` if it lies
    /// in none.
    ///
    /// `offset` tells how many seconds the device's clock is ahead of UTC at a moment. They begin
    /// and end when that clock shows it for the first time. Where it leaps over their beginning
    /// they begin with the leap; where it leaps over their end, they end as much later.
    package func span(
        around now: Timestamp, offset: (Timestamp) -> Int64
    ) -> Range<Timestamp>? {
        let around = 2 * Self.day
        let clock = SetClock(
            before: offset(Timestamp(seconds: now.seconds - around)),
            after: offset(Timestamp(seconds: now.seconds + around)))
        // No zone sets its clock twice in so few days: on most of them no more is to be asked.
        let here = clock.isSet ? offset(now) : clock.before
        let today = Self.midnight(before: now.seconds + here)
        let length = Int64(until - from) * 60 + (from < until ? 0 : Self.day)
        // Those that begin on a later day come first; a clock that is set back over midnight has
        // shown the next day already.
        for days in [1, 0, -1, -2] as [Int64] {
            let shown = today + days * Self.day + Int64(from) * 60
            let begin = Timestamp(seconds: clock.beginning(shown, offset))
            let end = Timestamp(seconds: clock.end(shown + length, offset))
            if begin <= now, now < end { return begin..<end }
        }
        return nil
    }

    /// When they end, if `now` lies in them; `nil` if it does not: ``span(around:offset:)``.
    package func end(
        at now: Timestamp, offset: (Timestamp) -> Int64
    ) -> Timestamp? {
        span(around: now, offset: offset)?.upperBound
    }

    private static let day: Int64 = 86_400

    private static func midnight(before second: Int64) -> Int64 {
        let rest = second % day
        return second - (rest < 0 ? rest + day : rest)
    }
}

/// A clock that is set once at most in the days that are asked about, in seconds: from being
/// `before` ahead of UTC to being `after` ahead.
private struct SetClock {
    let before: Int64
    let after: Int64

    var isSet: Bool { before != after }

    /// When it shows `shown` for the first time; `nil` if it leaps over it.
    private func first(_ shown: Int64, _ offset: (Timestamp) -> Int64) -> Int64? {
        guard isSet else { return shown - before }
        if offset(Timestamp(seconds: shown - before)) == before { return shown - before }
        return offset(Timestamp(seconds: shown - after)) == after ? shown - after : nil
    }

    /// When it shows `shown`, or more.
    func beginning(_ shown: Int64, _ offset: (Timestamp) -> Int64) -> Int64 {
        if let first = first(shown, offset) { return first }
        // The leap is after the one and not after the other.
        var (early, late) = (shown - after, shown - before)
        while late - early > 1 {
            let middle = early + (late - early) / 2
            let isEarly = offset(Timestamp(seconds: middle)) == before
            if isEarly { early = middle } else { late = middle }
        }
        return late
    }

    /// When it shows `shown`, or would if it had not been set.
    func end(_ shown: Int64, _ offset: (Timestamp) -> Int64) -> Int64 {
        first(shown, offset) ?? shown - before
    }
}

// MARK: JSON

extension DeviceKindness {
    /// The form in which it is kept; `nil` if it holds nothing back.
    package var storedForm: JSONObject? {
        var object = JSONObject()
        object["quietHours"] = quietHours?.json
        if isUnlessConnected { object["unlessConnected"] = true }
        return object.members.isEmpty ? nil : object
    }

    /// Reads what ``storedForm`` wrote.
    ///
    /// - Throws: ``JSONContractError`` if it is something else.
    package init(storedForm json: JSONValue) throws(JSONContractError) {
        let reader = try JSONReader(json)
        if let hours = reader.value("quietHours") {
            quietHours = try QuietHours(json: hours, path: reader.path(of: "quietHours"))
        }
        isUnlessConnected = try reader.bool("unlessConnected") ?? false
    }
}

extension QuietHours {
    /// Reads the wire form, which names the zone and two times of the day.
    ///
    /// Whether there is a zone of that name is for whoever knows them.
    ///
    /// - Throws: ``JSONContractError`` at the first member that does not fit.
    public init(json: JSONValue, path: String) throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(["timeZone", "from", "until"])
        timeZone = try reader.require("timeZone", try reader.string("timeZone"))
        from = try reader.minute("from")
        until = try reader.minute("until")
        guard from != until else {
            throw reader.failure(
                "until", "must differ from \"from\": pause a subscription to hear nothing of it")
        }
    }

    /// The wire form.
    public var json: JSONValue {
        [
            "timeZone": .string(timeZone), "from": .string(Self.text(from)),
            "until": .string(Self.text(until)),
        ]
    }

    private static func text(_ minute: Int) -> String {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(two(minute / 60)):\(two(minute % 60))"
    }
}

private extension JSONReader {
    /// A time of the day, as the minute of it.
    func minute(_ name: String) throws(JSONContractError) -> Int {
        let text = try require(name, try string(name))
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2,
            parts.allSatisfy({ $0.utf8.count == 2 && $0.utf8.allSatisfy { 48...57 ~= $0 } }),
            let hour = Int(parts[0]), let minute = Int(parts[1]), hour < 24, minute < 60
        else { throw failure(name, "a time from \"00:00\" to \"23:59\" is expected") }
        return hour * 60 + minute
    }
}
