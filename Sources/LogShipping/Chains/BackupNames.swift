package import RelayModel
import StorageSQLite

//  What stands where in a destination:
//
//      store                                        whose backups these are
//      CHAIN/log-SEQUENCE-MOMENT                    a segment, with a checksum behind it
//      CHAIN/base-NUMBER/part-NUMBER                a part of a copy of the file
//      CHAIN/base-NUMBER/whole-SINCE-LAST-MOMENT    the copy is whole: it needs segment SINCE on,
//                                                   and is the file as it was once LAST is laid
//                                                   over it, at the moment
//
//  A list of the names says what can be restored; nothing else has to be read for that.

/// A name in a destination.
enum BackupName: Sendable, Hashable {
    case segment(chain: String, sequence: UInt64, moment: Timestamp)
    case part(chain: String, base: UInt64, number: Int)
    case whole(chain: String, base: UInt64, BaseReach)

    /// The name of the note that says whose backups these are.
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

    /// Reads a name; `nil` for what is none of a backup.
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

    /// A number that can be counted on from: whoever writes there may have chosen it.
    private static func number(_ text: Substring) -> UInt64? {
        text.utf8.count <= 18 ? UInt64(text) : nil
    }

    /// A name for a chain that is begun now, which no other has, by eight random bytes.
    static func chain(begun moment: Timestamp, _ bytes: [UInt8]) -> String {
        let date = moment.iso8601Seconds.filter { $0 != "-" && $0 != ":" }
        return "\(date)-\(Hexadecimal.encode(bytes))"
    }

    /// Whether it is a name that ``chain(begun:_:)`` gives.
    static func isChain(_ text: Substring) -> Bool {
        text.utf8.count == 33
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x61...0x66, 0x54, 0x5A, 0x2D: true
                default: false
                }
            }
    }

    /// What the names of a chain's segments begin with whose numbers are about `sequence`: of one
    /// thousand, and of that before it, so that lists of them are short.
    static func segments(of chain: String, about sequence: UInt64) -> [String] {
        let thousand = sequence / 1000
        let numbers = thousand == 0 ? [0] : [thousand - 1, thousand]
        return numbers.map { "\(chain)/log-\(padded($0, 9))" }
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

/// What a whole copy needs, and from when on it can be restored.
package struct BaseReach: Sendable, Hashable {
    /// The first segment that it needs.
    package let since: UInt64
    /// The last segment that it needs at the least.
    package let last: UInt64
    /// The last commit in that segment: the earliest moment of this copy.
    package let moment: Timestamp
}
