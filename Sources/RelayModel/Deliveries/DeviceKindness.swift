/// When a device does not want to be disturbed.
public struct DeviceKindness: Sendable, Hashable {
    /// The hours of its day in which only urgent pushes may show, sound or change the badge.
    public var quietHours: QuietHours?
    /// Whether the relay sends no push while the device is connected and is told over the
    /// connection.
    public var isUnlessConnected = false

    /// Creates settings that hold nothing back.
    public init() {}

    /// Whether the settings hold nothing back.
    public var isEmpty: Bool { self == DeviceKindness() }
}

/// Hours of the day, by a device's own clock.
public struct QuietHours: Sendable, Hashable {
    /// The name of the time zone in the IANA database.
    public var timeZone: String
    /// The minute of the day at which the hours begin.
    public var from: Int
    /// The minute of the day at which the hours have ended; if it is before ``from``, it is on the
    /// next day.
    public var until: Int

    /// Returns the quiet hours that contain `now`, from their beginning up to but not including
    /// their end; `nil` if `now` is in none.
    ///
    /// `offset` returns how many seconds the device's clock is ahead of UTC at a moment. The hours
    /// begin and end when that clock shows the time for the first time. If the clock leaps over the
    /// beginning, they begin with the leap. If it leaps over the end, they end later by the length
    /// of the leap.
    package func span(
        around now: Timestamp, offset: (Timestamp) -> Int64
    ) -> Range<Timestamp>? {
        let around = 2 * Self.day
        let clock = SetClock(
            before: offset(Timestamp(seconds: now.seconds - around)),
            after: offset(Timestamp(seconds: now.seconds + around)))
        // No zone sets its clock twice within four days. If both ends agree, no further question is
        // needed.
        let here = clock.isSet ? offset(now) : clock.before
        let today = Self.midnight(before: now.seconds + here)
        let length = Int64(until - from) * 60 + (from < until ? 0 : Self.day)
        // Hours that begin on a later day come first, because a clock that is set back over
        // midnight has already shown the next day.
        for days in [1, 0, -1, -2] as [Int64] {
            let shown = today + days * Self.day + Int64(from) * 60
            let begin = Timestamp(seconds: clock.beginning(shown, offset))
            let end = Timestamp(seconds: clock.end(shown + length, offset))
            if begin <= now, now < end { return begin..<end }
        }
        return nil
    }

    /// Returns when the quiet hours that contain `now` end; `nil` if `now` is in none.
    ///
    /// See ``span(around:offset:)``.
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

/// A clock that is set at most once in the days in question.
///
/// It changes from `before` seconds ahead of UTC to `after` seconds ahead.
private struct SetClock {
    let before: Int64
    let after: Int64

    var isSet: Bool { before != after }

    /// Returns when the clock shows `shown` for the first time; `nil` if it leaps over that time.
    private func first(_ shown: Int64, _ offset: (Timestamp) -> Int64) -> Int64? {
        guard isSet else { return shown - before }
        if offset(Timestamp(seconds: shown - before)) == before { return shown - before }
        return offset(Timestamp(seconds: shown - after)) == after ? shown - after : nil
    }

    /// Returns when the clock first shows `shown` or a later time.
    func beginning(_ shown: Int64, _ offset: (Timestamp) -> Int64) -> Int64 {
        if let first = first(shown, offset) { return first }
        // Binary search: the leap is after `early` and not after `late`.
        var (early, late) = (shown - after, shown - before)
        while late - early > 1 {
            let middle = early + (late - early) / 2
            let isEarly = offset(Timestamp(seconds: middle)) == before
            if isEarly { early = middle } else { late = middle }
        }
        return late
    }

    /// Returns when the clock shows `shown`, or would show it if it had not been set.
    func end(_ shown: Int64, _ offset: (Timestamp) -> Int64) -> Int64 {
        first(shown, offset) ?? shown - before
    }
}

// MARK: JSON

extension DeviceKindness {
    /// The form in which the settings are stored; `nil` if they hold nothing back.
    package var storedForm: JSONObject? {
        var object = JSONObject()
        object["quietHours"] = quietHours?.json
        if isUnlessConnected { object["unlessConnected"] = true }
        return object.members.isEmpty ? nil : object
    }

    /// Reads what ``storedForm`` wrote.
    ///
    /// - Throws: ``JSONContractError`` if `json` is in another form.
    package init(storedForm json: JSONValue) throws(JSONContractError) {
        let reader = try JSONReader(json)
        if let hours = reader.value("quietHours") {
            quietHours = try QuietHours(json: hours, path: reader.path(of: "quietHours"))
        }
        isUnlessConnected = try reader.bool("unlessConnected") ?? false
    }
}

extension QuietHours {
    /// Reads the wire form, which names the time zone and two times of the day.
    ///
    /// The caller must check that the time zone exists.
    ///
    /// - Throws: ``JSONContractError`` at the first invalid member.
    public init(json: JSONValue, path: String) throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(["timeZone", "from", "until"])
        timeZone = try reader.require("timeZone", try reader.string("timeZone"))
        from = try reader.minute("from")
        until = try reader.minute("until")
        guard from != until else {
            throw reader.failure(
                "until",
                "must differ from \"from\"; to get no notifications at all, pause the subscription")
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
    /// Reads a time of the day as its minute.
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
