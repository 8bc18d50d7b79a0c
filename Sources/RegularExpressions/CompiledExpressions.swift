import PredicateLanguage
import Synchronization

/// A cache of the most recently used compiled patterns for the whole process, limited by size in
/// bytes.
///
/// It has two generations. A pattern that is found in the older one moves to the younger. When the
/// younger is full, it replaces the older, whose remaining patterns are dropped.
final class CompiledExpressions: Sendable {
    /// A pattern as it was written, and whether it ignores case.
    ///
    /// Patterns compare by bytes: `[é]` is a different set if the letter is spelled as two scalars,
    /// although both patterns are equal as Swift strings.
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

    /// Returns the compiled expression from the cache, or compiles it.
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

/// A pattern that was checked earlier and is compiled when the first text is matched.
///
/// A store may have very many patterns, most of which are never needed. The evaluation that needs
/// the pattern bears the cost of compiling it.
final class LazyExpression: CompiledExpression {
    private let name: CompiledExpressions.Name

    init(_ name: CompiledExpressions.Name) {
        self.name = name
    }

    private var compiled: RE2Expression? { try? CompiledExpressions.shared.expression(name) }

    var size: Int { compiled?.size ?? 1 }

    func matchesWhole(_ text: String) -> Bool? { compiled?.matchesWhole(text) }
}
