import PredicateLanguage
import Synchronization

/// A limit on what the patterns of one caller may take to compile, in RE2 instructions.
///
/// A processor compiles about a million of them in a second. The allowance is a task-local value,
/// so that the layers between the call and the engine need not pass it on. A pattern that is
/// already in the cache costs nothing, whichever caller it was compiled for.
package final class PatternAllowance: Sendable {
    /// The allowance of this task; if it is `nil`, only the bounds of a condition apply.
    @TaskLocal package static var current: PatternAllowance?

    private struct State {
        var spent = 0
        var wasThrottled = false
    }

    private let state = Mutex(State())
    private let most: Int
    private let mayCompile: @Sendable () -> Bool

    /// Creates an allowance of which nothing is spent.
    ///
    /// - Parameters:
    ///   - most: The number of instructions after which nothing more is compiled.
    ///   - mayCompile: Returns whether the caller's earlier requests still leave it room; asked
    ///     before each compilation.
    package init(most: Int, mayCompile: @escaping @Sendable () -> Bool) {
        self.most = most
        self.mayCompile = mayCompile
    }

    /// The number of instructions that were compiled so far.
    package var spent: Int { state.withLock { $0.spent } }
    /// Whether a pattern was refused because the caller had compiled too much earlier.
    package var wasThrottled: Bool { state.withLock { $0.wasThrottled } }

    /// Checks that the allowance leaves room for another compilation.
    func check() throws(RegularExpressionRefusal) {
        guard spent < most else {
            throw RegularExpressionRefusal(
                "the patterns of one request are too large in total; send fewer at a time")
        }
        guard mayCompile() else {
            state.withLock { $0.wasThrottled = true }
            throw RegularExpressionRefusal(
                "too many patterns were sent within a short time; try again later", passes: true)
        }
    }

    func spend(_ instructions: Int) {
        state.withLock { $0.spent += instructions }
    }
}

/// The patterns of one condition, which are counted before the condition is accepted.
///
/// Otherwise a client that saves a condition, or queries with one, could keep a processor busy
/// without any record being evaluated.
final class ConditionPatterns: Sendable {
    /// The maximum number of patterns of a condition.
    static let most = 100
    /// The maximum number of instructions of all patterns of a condition: about 50 ms at worst.
    static let mostInstructions = 40_000
    /// The approximate cost of a pattern that is refused during compilation.
    private static let refused = 10_000

    private struct Counted {
        var patterns = 0
        var instructions = 0
    }

    private let counted = Mutex(Counted())

    /// Compiles the next pattern of the condition.
    ///
    /// - Throws: ``RegularExpressionRefusal`` if the pattern is broken, or if the condition exceeds
    ///   a limit.
    func compile(
        _ name: CompiledExpressions.Name
    ) throws(RegularExpressionRefusal) -> RE2Expression {
        let count = counted.withLock { counted in
            counted.patterns += 1
            return counted.patterns
        }
        guard count <= Self.most else {
            throw RegularExpressionRefusal("a condition can have at most \(Self.most) patterns")
        }
        let expression =
            if let known = CompiledExpressions.shared.find(name) {
                known
            } else {
                try Self.compileAnew(name)
            }
        let instructions = counted.withLock { counted in
            counted.instructions += expression.size
            return counted.instructions
        }
        guard instructions <= Self.mostInstructions else {
            throw RegularExpressionRefusal(
                "the condition's patterns are too large in total: \(instructions) instructions; at "
                    + "most \(Self.mostInstructions) are allowed")
        }
        return expression
    }

    private static func compileAnew(
        _ name: CompiledExpressions.Name
    ) throws(RegularExpressionRefusal) -> RE2Expression {
        let allowance = PatternAllowance.current
        try allowance?.check()
        do throws(RegularExpressionRefusal) {
            let expression = try RE2Expression(name)
            allowance?.spend(expression.size)
            CompiledExpressions.shared.keep(expression, as: name)
            return expression
        } catch {
            allowance?.spend(Self.refused)
            throw error
        }
    }
}
