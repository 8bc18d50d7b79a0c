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

    /// Whether a minute of the day lies in them.
    public func has(minute: Int) -> Bool {
        from < until ? (from..<until).contains(minute) : minute >= from || minute < until
    }

    /// When they end, if `now` lies in them; `nil` if it does not.
    ///
    /// `offset` tells how many seconds the device's clock is ahead of UTC at a moment. Where that
    /// changes meanwhile, they end when its clock shows their end for the first time; if it never
    /// shows it, as many minutes later as the clock leaps.
    package func end(
        at now: Timestamp, offset: (Timestamp) -> Int64
    ) -> Timestamp? {
        let here = offset(now)
        let second = Self.secondOfDay(now.seconds + here)
        guard has(minute: Int(second / 60)) else { return nil }
        let left = Self.secondOfDay(Int64(until) * 60 - second)
        let end = Timestamp(seconds: now.seconds + (left == 0 ? Self.day : left))
        let moved = Timestamp(seconds: end.seconds + here - offset(end))
        // The clock was set while they last: its own end counts, unless it has none.
        let isEnd = Self.secondOfDay(moved.seconds + offset(moved)) == Int64(until) * 60
        return isEnd && now < moved ? moved : end
    }

    private static let day: Int64 = 86_400

    private static func secondOfDay(_ seconds: Int64) -> Int64 {
        let rest = seconds % day
        return rest < 0 ? rest + day : rest
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
