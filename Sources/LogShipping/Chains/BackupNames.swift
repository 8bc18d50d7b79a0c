package import RelayModel
import StorageSQLite

//  The names in a destination:
//
//      store                                        which store these backups belong to
//      CHAIN/log-SEQUENCE-MOMENT                    a segment, followed by its checksum
//      CHAIN/base-NUMBER/part-NUMBER                a part of a copy of the file
//      CHAIN/base-NUMBER/whole-SINCE-LAST-MOMENT    the manifest of a whole copy: the copy needs
//                                                   the segments from SINCE on. With the log up to
//                                                   LAST applied, it is the file as of MOMENT.
//
//  A list of the names shows what can be restored; no object has to be read for that.

/// A name in a destination.
enum BackupName: Sendable, Hashable {
    case segment(chain: String, sequence: UInt64, moment: Timestamp)
    case part(chain: String, base: UInt64, number: Int)
    case whole(chain: String, base: UInt64, BaseReach)

    /// The name of the note that says which store the backups belong to.
    static let store = "store"

    var text: String {
        switch self {
        case .segment(let chain, let sequence, let moment):
            "\(chain)/log-\(Self.padded(sequence, 12))-\(Self.moment(moment))"
        case .part(let chain, let base, let number):
            "\(chain)/\(Self.folder(base))/part-\(Self.padded(UInt64(number), 6))"
        case .whole(let chain, let base, let reach):
            "\(chain)/\(Self.folder(base))/whole-\(Self.padded(reach.since, 12))-"
                + "\(Self.padded(reach.last, 12))-\(Self.moment(reach.moment))"
        }
    }

    /// Parses a name; returns `nil` if it is not the name of a part of a backup.
    init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 || parts.count == 3, Self.isChain(parts[0]) else { return nil }
        let chain = String(parts[0])
        let words = (parts.last ?? "").split(separator: "-")
        if parts.count == 2 {
            guard words.count == 3, words[0] == "log", let sequence = Self.number(words[1]),
                let moment = Int64(words[2])
            else { return nil }
            self = .segment(
                chain: chain, sequence: sequence, moment: Timestamp(nanosecondsSince1970: moment))
            return
        }
        guard parts[1].hasPrefix("base-"), let base = Self.number(parts[1].dropFirst(5)) else {
            return nil
        }
        switch (words.first, words.count) {
        case ("part", 2):
            guard let number = Self.number(words[1]) else { return nil }
            self = .part(chain: chain, base: base, number: Int(number))
        case ("whole", 4):
            guard let since = Self.number(words[1]), let last = Self.number(words[2]),
                let moment = Int64(words[3])
            else { return nil }
            self = .whole(
                chain: chain, base: base,
                BaseReach(
                    since: since, last: last, moment: Timestamp(nanosecondsSince1970: moment)))
        default: return nil
        }
    }

    /// Parses a number of at most 18 digits, so that counting on from it cannot overflow: the names
    /// may be chosen by an attacker who can write to the destination.
    private static func number(_ text: Substring) -> UInt64? {
        text.utf8.count <= 18 ? UInt64(text) : nil
    }

    /// Returns the name of a chain that begins at `moment`.
    ///
    /// Eight random bytes make it unique.
    static func chain(begun moment: Timestamp, _ bytes: [UInt8]) -> String {
        let date = moment.iso8601Seconds.filter { $0 != "-" && $0 != ":" }
        return "\(date)-\(Hexadecimal.encode(bytes))"
    }

    /// Returns whether `text` is a name that ``chain(begun:_:)`` returns.
    static func isChain(_ text: Substring) -> Bool {
        text.utf8.count == 33
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x61...0x66, 0x54, 0x5A, 0x2D: true
                default: false
                }
            }
    }

    /// Returns the prefix of the names of a chain's segments of which one thousand begin alike.
    static func segments(of chain: String, thousand: UInt64) -> String {
        "\(chain)/log-\(padded(thousand, 9))"
    }

    private static func folder(_ base: UInt64) -> String { "base-\(padded(base, 12))" }

    private static func moment(_ moment: Timestamp) -> String {
        padded(UInt64(clamping: moment.nanosecondsSince1970), 19)
    }

    private static func padded(_ number: UInt64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

/// The segments that a whole copy needs, and the earliest moment that it can be restored to.
package struct BaseReach: Sendable, Hashable {
    /// The first segment that the copy needs.
    package let since: UInt64
    /// The last segment that the copy needs at least.
    package let last: UInt64
    /// The moment of the last commit in that segment, which is the earliest moment of this copy.
    package let moment: Timestamp
}
