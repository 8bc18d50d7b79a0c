import PredicateLanguage
import RelayModel

/// What is known about the values for which a comparison holds that rows cannot judge.
///
/// It is enough for a look-up, after which the reference evaluator decides.
enum KeyClue {
    /// The value is a text that begins with this one.
    case prefix(String)
    /// The value is a text that contains this one.
    case part(String)
    /// The value has one of these words, and every value that has one satisfies the comparison.
    case words([String])
    /// The value is a collection with one of these elements.
    case elements([FieldValue])
    /// The value is a location within this distance, in metres.
    case near(Location, metres: Double)
    /// The value is a location in one of these circles.
    case nearOne([(centre: Location, metres: Double)])
    /// The value is a number or date between the two, inclusive.
    case between(FieldValue, FieldValue)
    /// The value refers to a record with one of these names, or is an object with such a name.
    case links([String])

    /// The approximate number of keys that the clue gives.
    var keys: Int {
        switch self {
        case .prefix, .part, .near, .between: 1
        case .words(let words): max(words.count, 1)
        case .elements(let values): max(values.count, 1)
        case .nearOne(let circles): max(circles.count, 1)
        case .links(let names): max(names.count, 1)
        }
    }
}

// Comparisons that have keys although no row judges them, or only an expensive one.
extension Leaf {
    /// Reads LIKE, MATCHES and TOKENMATCHES.
    init?(
        pattern comparator: RecordPredicate.Comparator, _ value: FieldValue,
        _ options: TextOptions
    ) {
        guard case .string(let text) = value else { return nil }
        switch comparator {
        case .like: self.init(like: text, options)
        case .matches where options.subtracting(.localeAware).isEmpty:
            guard let prefix = PatternText.prefix(ofRegularExpression: text) else { return nil }
            self.init(.reference, clue: .prefix(prefix))
        case .tokenMatches: self.init(.reference, clue: .words(IndexedText.words(of: text)))
        default: return nil
        }
    }

    /// Patterns such as `*abc*` become rows.
    ///
    /// If case is ignored, the reference evaluator decides, because its rules for case are then
    /// those of regular expressions.
    private init?(like text: String, _ options: TextOptions) {
        let ignoresCase = options.contains(.ignoringCase)
        let folding = options.intersection([.ignoringCase, .ignoringDiacritics])
        let composed = IndexedText.folded(text, folding)
        let pattern = PatternText(composed)
        let clue =
            ignoresCase
            ? PatternText.plainPrefix(pattern.prefix).map(KeyClue.prefix) : pattern.clue
        let isRow = !ignoresCase && text.utf8.count <= PatternText.longestRow
        guard clue != nil || isRow else { return nil }
        self.init(isRow ? .like : .reference, .string(composed), clue: clue)
    }

    /// Reads `distanceToLocation:fromLocation:(field, place) < metres`.
    init?(
        distance arguments: [RecordPredicate.Expression],
        _ comparator: RecordPredicate.Comparator, _ value: FieldValue
    ) {
        guard comparator == .less || comparator == .lessOrEqual, arguments.count == 2 else {
            return nil
        }
        let metres: Double
        switch value {
        case .integer(let number): metres = Double(number).nextUp
        case .double(let number): metres = number
        default: return nil
        }
        let (path, place): (RecordPredicate.RecordPath, Location)
        switch (arguments[0], arguments[1]) {
        case (.path(let left), .constant(.location(let right))): (path, place) = (left, right)
        case (.constant(.location(let left)), .path(let right)): (path, place) = (right, left)
        default: return nil
        }
        self.init(.reference, clue: .near(place, metres: metres))
        guard name(path), !field.isEmpty else { return nil }
    }

    /// Makes the path lead to the whole record, and returns whether that has keys:
    /// `SELF CONTAINS 'words'` looks for words in all texts of the record.
    ///
    /// No other comparison of the whole record has keys.
    mutating func takeRecord() -> Bool {
        switch (test, constant, clue) {
        case (.has, .string(let text), _):
            self = Leaf(.reference, clue: .words(IndexedText.words(of: text)))
            return true
        case (.reference, _, .words?): return true
        default: return false
        }
    }

    /// Applies a comparison's folding, if the comparison has texts.
    mutating func fold(_ options: TextOptions) {
        guard !options.isEmpty else { return }
        switch clue {
        case .words, .near, .nearOne, .between, .links: return
        case .elements(let values):
            folding = options
            clue = .elements(values.map { $0.folded(options) })
            return
        case .prefix, .part: folding = options
        case nil: break
        }
        let hasTexts = [constant, upper ?? .null].contains(where: \.isText)
        guard hasTexts || members.contains(where: \.isText) else { return }
        folding = options
        constant = constant.folded(options)
        upper = upper?.folded(options)
        members = members.map { $0.folded(options) }
    }
}

extension FieldValue {
    /// Whether this is a text.
    var isText: Bool {
        if case .string = self { true } else { false }
    }

    /// Returns this value with a text folded.
    func folded(_ options: TextOptions) -> FieldValue {
        if case .string(let text) = self {
            .string(IndexedText.folded(text, options))
        } else {
            self
        }
    }
}
