import PredicateLanguage
import Synchronization

/// The patterns that were compiled last, for the whole process and up to a number of bytes: the
/// same pattern is compiled once, and of those that nobody needs nothing stays.
///
/// There are two generations. What is found in the older one goes over to the younger; when that is
/// full, the older is dropped.
final class CompiledExpressions: Sendable {
    /// A pattern as it was written, and how it is meant.
    ///
    /// Patterns are the same if their bytes are: `[é]` is another set where the letter is spelled
    /// as two scalars, though the two are equal as texts.
    struct Name: Hashable, Sendable {
        let pattern: String
        let ignoresCase: Bool

        static func == (left: Name, right: Name) -> Bool {
            left.ignoresCase == right.ignoresCase
                && left.pattern.utf8.elementsEqual(right.pattern.utf8)
        }
    }

    private struct Generations {
        var young: [Name: RE2Expression] = [:]
        var old: [Name: RE2Expression] = [:]
        var youngBytes = 0
    }

    static let shared = CompiledExpressions(bytes: 128 * 1_048_576)

    private let generations = Mutex(Generations())
    private let bytesOfOne: Int

    init(bytes: Int) {
        bytesOfOne = bytes / 2
    }

    func find(_ name: Name) -> RE2Expression? {
        generations.withLock { all in
            if let expression = all.young[name] { return expression }
            guard let expression = all.old[name] else { return nil }
            put(expression, as: name, in: &all)
            return expression
        }
    }

    func keep(_ expression: RE2Expression, as name: Name) {
        generations.withLock { put(expression, as: name, in: &$0) }
    }

    /// What was compiled before, or is now.
    func expression(_ name: Name) throws(RegularExpressionRefusal) -> RE2Expression {
        if let expression = find(name) { return expression }
        let expression = try RE2Expression(name)
        keep(expression, as: name)
        return expression
    }

    private func put(_ expression: RE2Expression, as name: Name, in all: inout Generations) {
        if all.youngBytes >= bytesOfOne {
            all.old = all.young
            (all.young, all.youngBytes) = ([:], 0)
        }
        guard all.young.updateValue(expression, forKey: name) == nil else { return }
        all.youngBytes += expression.bytes
    }
}

/// A pattern that was checked before, and is compiled when a text comes to be matched: a store may
/// have very many of them, and most are never needed.
///
/// What compiling takes is the evaluation's that needs it.
final class LazyExpression: CompiledExpression {
    private let name: CompiledExpressions.Name

    init(_ name: CompiledExpressions.Name) {
        self.name = name
    }

    private var compiled: RE2Expression? { try? CompiledExpressions.shared.expression(name) }

    var size: Int { compiled?.size ?? 1 }

    func matchesWhole(_ text: String) -> Bool? { compiled?.matchesWhole(text) }
}
