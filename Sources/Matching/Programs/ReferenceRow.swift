import PredicateLanguage
import RelayModel

/// A part of a predicate that rows cannot judge, kept as the reference evaluator wants it.
struct ReferenceRow: Sendable {
    /// The part's canonical text, by which it is known.
    let text: [UInt8]
    /// The part made ready; `nil` if that failed, and then it never has an answer.
    let predicate: PreparedPredicate?
    /// The fields it reads; `nil` if that cannot be told from the text.
    let fields: [String]?
    /// How many programs name it.
    var uses = 0
    /// Bytes held, roughly: a tree of enumerations costs about so much for each letter of its text.
    let bytes: Int

    init(_ source: RecordPredicate, text: [UInt8]) {
        self.text = text
        bytes = 256 + text.count * 25
        var fields: Set<String> = []
        self.fields = source.root.collectFields(&fields) ? fields.sorted() : nil
        do throws(PredicateError) {
            predicate = try PreparedPredicate(source)
        } catch {
            predicate = nil
        }
    }

    func answer(for change: DecodedChange) -> RowAnswer {
        if change.isPartial {
            guard let fields, fields.allSatisfy({ change.fields[$0] != nil }) else {
                return .unknown
            }
        }
        switch predicate?.evaluate(on: change.fields, now: change.now) {
        case .true: return .holds
        case .false: return .fails
        case .error, nil: return .error
        }
    }
}
