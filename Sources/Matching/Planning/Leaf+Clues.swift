import PredicateLanguage
import RelayModel

/// What is known about a value for which a comparison holds that rows cannot judge: enough to look
/// it up, after which the reference evaluator decides.
enum KeyClue {
    /// It is a text that begins so.
    case prefix(String)
    /// It is a text that has this inside.
    case part(String)
    /// It has one of these words, and whatever has one satisfies the comparison.
    case words([String])
    /// It is a collection with one of these elements.
    case elements([FieldValue])
    /// It is a place within this distance, in metres.
    case near(Location, metres: Double)
    /// It is a place within one of these circles.
    case nearOne([(centre: Location, metres: Double)])
    /// It is a number or date from one to the other.
    case between(FieldValue, FieldValue)
    /// It refers to a record of one of these names, or stands for one.
    case links([String])

    /// How many keys it gives, about.
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

// Comparisons that have keys though no row, or only a costly one, judges them.
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

    /// `*abc*` and the like are rows; where case is ignored the reference evaluator decides, whose
    /// notion of case there is that of regular expressions.
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

    /// Has the path lead to the whole record: `SELF CONTAINS 'words'` asks for words in all its
    /// texts; anything else has no keys.
    mutating func takeRecord() -> Bool {
        switch (test, constant, clue) {
        case (.has, .string(let text), _):
            self = Leaf(.reference, clue: .words(IndexedText.words(of: text)))
            return true
        case (.reference, _, .words?): return true
        default: return false
        }
    }

    /// Takes on a comparison's folding, where there are texts to be folded.
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

    /// The same with a text folded.
    func folded(_ options: TextOptions) -> FieldValue {
        if case .string(let text) = self {
            .string(IndexedText.folded(text, options))
        } else {
            self
        }
    }
}
