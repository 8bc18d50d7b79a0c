/// A date of the proleptic Gregorian calendar.
///
/// The arithmetic counts years from March, so that the leap day is the last day of the year. 400
/// years are always 146,097 days.
package struct CivilDate: Sendable, Hashable {
    /// The year; 0 is the year before year 1.
    package var year: Int64
    /// The month, from 1.
    package var month: Int64
    /// The day of the month, from 1.
    package var day: Int64

    /// Creates a date from its parts without checking that it exists.
    package init(year: Int64, month: Int64, day: Int64) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// Days from 0000-03-01 to 1970-01-01.
    private static let daysTo1970: Int64 = 719_468

    /// Creates the date that is `days` days after 1970-01-01.
    package init(daysSince1970 days: Int64) {
        let shifted = days + Self.daysTo1970
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    }

    /// The number of days since 1970-01-01, negative before it.
    ///
    /// The month must be 1 to 12. A day beyond the end of its month counts on into the next month.
    package var daysSince1970: Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let monthFromMarch = (month + 9) % 12
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - Self.daysTo1970
    }

    /// Whether the calendar has this day.
    package var isInCalendar: Bool {
        (1...12).contains(month) && (1...Self.days(inMonth: month, of: year)).contains(day)
    }

    private static func days(inMonth month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2:
            year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
                ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
