import RelayModel

/// The elements of a constant list, sorted by kinds so that IN takes little time however long the
/// list is.
final class ConstantMembers: Sendable {
    /// Integers, and doubles that are integers, in order.
    private let integers: [Int64]
    private let doubles: Set<Double>
    /// Texts, folded as the options say.
    private let texts: Set<String>
    /// Few texts are compared one by one, which is faster than hashing.
    private let fewTexts: [String]
    private let others: Set<FieldValue>
    private let hasNil: Bool
    private let options: RecordPredicate.TextOptions
    private let rules: RecordPredicate.RuleSet

    /// How many texts are few.
    private static let few = 8

    /// Sorts `values`, or returns `nil` where equality is more than a look-up tells: with
    /// collections, and under Realm's rules with data and texts beyond ASCII.
    init?(
        _ values: [FieldValue], _ options: RecordPredicate.TextOptions,
        _ rules: RecordPredicate.RuleSet
    ) {
        guard rules == .apple || rules == .realm, !options.contains(.normalized),
            rules == .apple || !options.folds
        else { return nil }
        var integers: [Int64] = []
        var doubles: Set<Double> = []
        var texts: Set<String> = []
        var others: Set<FieldValue> = []
        var hasNil = false
        for value in values {
            switch value {
            case .null: hasNil = true
            case .integer(let number): integers.append(number)
            case .bool(let flag) where rules == .apple: integers.append(flag ? 1 : 0)
            case .double(let number):
                if let integer = Int64(exactly: number) {
                    integers.append(integer)
                } else {
                    doubles.insert(number)
                }
            case .string(let text):
                guard rules == .apple || text.utf8Span.isKnownASCII else { return nil }
                texts.insert(TextFolding.fold(text, options))
            case .list, .set, .map: return nil
            case .bytes where rules == .realm: return nil
            default: others.insert(value)
            }
        }
        self.integers = integers.sorted()
        self.doubles = doubles
        self.texts = texts
        fewTexts = texts.count > Self.few ? [] : texts.sorted()
        self.others = others
        self.hasNil = hasNil
        self.options = options
        self.rules = rules
    }

    /// Whether some element equals `value`; `nil` for what it cannot tell, such as collections.
    func contains(_ value: FieldValue) -> Bool? {
        switch value {
        case .null: hasNil
        case .integer(let number): has(number)
        case .bool(let flag) where rules == .apple: has(flag ? 1 : 0)
        case .double(let number):
            if let integer = Int64(exactly: number) {
                has(integer)
            } else {
                !doubles.isEmpty && doubles.contains(number)
            }
        case .string(let text): has(text)
        case .list, .set, .map: nil
        case .bytes where rules == .realm: nil
        default: !others.isEmpty && others.contains(value)
        }
    }

    private func has(_ number: Int64) -> Bool {
        var low = 0
        var high = integers.count
        while low < high {
            let middle = (low + high) / 2
            if integers[middle] < number { low = middle + 1 } else { high = middle }
        }
        return low < integers.count && integers[low] == number
    }

    private func has(_ text: String) -> Bool {
        if texts.isEmpty { return false }
        // By Realm's rules texts are equal byte by byte, and all of these are ASCII.
        if rules == .realm, !text.utf8Span.isKnownASCII, !text.utf8.allSatisfy({ $0 < 0x80 }) {
            return false
        }
        let wanted = options.folds ? TextFolding.fold(text, options) : text
        return fewTexts.isEmpty ? texts.contains(wanted) : fewTexts.contains(wanted)
    }
}
