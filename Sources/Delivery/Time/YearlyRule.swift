import RelayModel

/// The yearly changes of a zone's clocks, in POSIX notation (`CET-1CEST,M3.5.0,M10.5.0/3`), with
/// the hours that RFC 9636 adds.
struct YearlyRule: Sendable, Hashable {
    /// A day of each year, and the local time at which the clocks are changed.
    private struct Change: Hashable {
        enum Day: Hashable {
            /// A number from 1 to 365.
            ///
            /// The 29th of February is never counted.
            case julian(Int64)
            /// A number from 0 to 365.
            case ofYear(Int64)
            /// A weekday from 0, which is Sunday, in the first to fourth week of a month, or its
            /// last one (5).
            case weekday(month: Int64, week: Int64, weekday: Int64)
        }

        let day: Day
        let time: Int64

        /// Returns the seconds since 1970, by the clocks before the change.
        func moment(in year: Int64) -> Int64 { days(in: year) * 86_400 + time }

        private func days(in year: Int64) -> Int64 {
            let start = CivilDate(year: year, month: 1, day: 1).daysSince1970
            switch day {
            case .julian(let number):
                let isLeap = CivilDate(year: year, month: 2, day: 29).isInCalendar
                return start + number - 1 + (isLeap && number >= 60 ? 1 : 0)
            case .ofYear(let number): return start + number
            case .weekday(let month, let week, let weekday):
                let first = CivilDate(year: year, month: month, day: 1).daysSince1970
                // The first day of 1970 was a Thursday, which is weekday 4.
                let offset = (weekday - (first + 4) % 7 + 14) % 7
                var day = offset + 7 * (week - 1)
                while !CivilDate(year: year, month: month, day: day + 1).isInCalendar { day -= 7 }
                return first + day
            }
        }
    }

    private let standard: Int64
    private let summer: (offset: Int64, from: Change, until: Change)?

    /// Parses a rule, or returns `nil` if the text is not one.
    init?(_ text: String) {
        var reader = RuleReader(text)
        guard reader.name(), let west = reader.time() else { return nil }
        standard = -west
        guard !reader.isAtEnd else {
            summer = nil
            return
        }
        guard reader.name() else { return nil }
        var offset = standard + 3600
        if !reader.isNext(","), let west = reader.time() { offset = -west }
        guard reader.take(","), let from = Self.change(&reader), reader.take(","),
            let until = Self.change(&reader), reader.isAtEnd
        else { return nil }
        summer = (offset, from, until)
    }

    private static func change(_ reader: inout RuleReader) -> Change? {
        let day: Change.Day
        if reader.take("M") {
            guard let month = reader.number(1...12), reader.take("."),
                let week = reader.number(1...5), reader.take("."),
                let weekday = reader.number(0...6)
            else { return nil }
            day = .weekday(month: month, week: week, weekday: weekday)
        } else if reader.take("J") {
            guard let number = reader.number(1...365) else { return nil }
            day = .julian(number)
        } else {
            guard let number = reader.number(0...365) else { return nil }
            day = .ofYear(number)
        }
        guard reader.take("/") else { return Change(day: day, time: 7200) }
        return reader.time().map { Change(day: day, time: $0) }
    }

    /// Returns how many seconds the clocks are ahead of UTC, at a moment in seconds since 1970.
    func offset(at moment: Int64) -> Int64 {
        guard let summer else { return standard }
        let local = moment + standard
        let days = local / 86_400 - (local % 86_400 < 0 ? 1 : 0)
        let year = CivilDate(daysSince1970: days).year
        let from = summer.from.moment(in: year) - standard
        let until = summer.until.moment(in: year) - summer.offset
        let isSummer =
            from < until
            ? (from..<until).contains(moment) : !(until..<from).contains(moment)
        return isSummer ? summer.offset : standard
    }

    static func == (one: YearlyRule, other: YearlyRule) -> Bool {
        one.standard == other.standard && one.summer?.offset == other.summer?.offset
            && one.summer?.from == other.summer?.from && one.summer?.until == other.summer?.until
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(standard)
        hasher.combine(summer?.from)
    }
}

/// Reads the parts of a rule one after the other.
private struct RuleReader {
    private var rest: Substring

    init(_ text: String) {
        rest = text[...]
    }

    var isAtEnd: Bool { rest.isEmpty }

    func isNext(_ sign: Character) -> Bool { rest.first == sign }

    mutating func take(_ sign: Character) -> Bool {
        guard rest.first == sign else { return false }
        rest.removeFirst()
        return true
    }

    /// Reads an abbreviation, which may be in angle brackets.
    mutating func name() -> Bool {
        if take("<") {
            guard let end = rest.firstIndex(of: ">") else { return false }
            rest = rest[rest.index(after: end)...]
            return true
        }
        let name = rest.prefix { $0.isASCII && $0.isLetter }
        rest = rest.dropFirst(name.count)
        return name.count >= 3
    }

    mutating func number(_ range: ClosedRange<Int64>) -> Int64? {
        let digits = rest.prefix { $0.isASCII && $0.isNumber }
        guard let number = Int64(digits), range.contains(number) else { return nil }
        rest = rest.dropFirst(digits.count)
        return number
    }

    /// Reads hours, which may exceed a day, minutes and seconds, and returns them as seconds.
    mutating func time() -> Int64? {
        let isNegative = take("-")
        if !isNegative { _ = take("+") }
        guard var seconds = number(0...167).map({ $0 * 3600 }) else { return nil }
        for unit in [60, 1] as [Int64] where take(":") {
            guard let number = number(0...59) else { return nil }
            seconds += number * unit
        }
        return isNegative ? -seconds : seconds
    }
}
