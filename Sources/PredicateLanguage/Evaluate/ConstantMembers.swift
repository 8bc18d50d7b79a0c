import RelayModel

/// The elements of a constant list, sorted by kind so that IN takes little time even for a long
/// list.
final class ConstantMembers: Sendable {
    /// Integers and doubles with an integral value, sorted.
    private let integers: [Int64]
    private let doubles: Set<Double>
    /// Texts, folded as the options require.
    private let texts: Set<String>
    /// The texts if there are only a few: comparing them one by one is faster than hashing.
    private let fewTexts: [String]
    private let others: Set<FieldValue>
    private let hasNil: Bool
    private let options: RecordPredicate.TextOptions
    private let rules: RecordPredicate.RuleSet

    /// The maximum number of texts that are compared one by one.
    private static let few = 8

    /// Creates the sorted members.
    ///
    /// Returns `nil` if a look-up cannot decide equality: for collections, and under Realm's rules
    /// for binary data and non-ASCII texts.
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

    /// Returns whether some element equals `value`, or `nil` if a look-up cannot decide it, for
    /// example for collections.
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
        // Realm compares texts byte by byte, and all these texts are ASCII.
        if rules == .realm, !text.utf8Span.isKnownASCII, !text.utf8.allSatisfy({ $0 < 0x80 }) {
            return false
        }
        let wanted = options.folds ? TextFolding.fold(text, options) : text
        return fewTexts.isEmpty ? texts.contains(wanted) : fewTexts.contains(wanted)
    }
}
