import PredicateLanguage
import Synchronization

/// What the patterns that one caller sends may take to be compiled, in RE2's instructions, of which
/// a processor compiles about a million in a second.
///
/// It goes with the task that works the call, so that nobody between the call and the engine need
/// know of it. What was compiled before, for whomever, takes nothing.
package final class PatternAllowance: Sendable {
    /// The allowance of this task; where there is none, a condition's own bounds hold alone.
    @TaskLocal package static var current: PatternAllowance?

    private struct State {
        var spent = 0
        var wasThrottled = false
    }

    private let state = Mutex(State())
    private let most: Int
    private let mayCompile: @Sendable () -> Bool

    /// Begins with nothing spent.
    ///
    /// - Parameters:
    ///   - most: The instructions after which nothing more is compiled.
    ///   - mayCompile: Whether the caller has not had too much before; it is asked each time.
    package init(most: Int, mayCompile: @escaping @Sendable () -> Bool) {
        self.most = most
        self.mayCompile = mayCompile
    }

    /// The instructions that were compiled.
    package var spent: Int { state.withLock { $0.spent } }
    /// Whether something was refused because the caller had had too much before.
    package var wasThrottled: Bool { state.withLock { $0.wasThrottled } }

    /// Refuses what is beyond the allowance, before it is compiled.
    func check() throws(RegularExpressionRefusal) {
        guard spent < most else {
            throw RegularExpressionRefusal(
                "the patterns of one request are too large together; send fewer at a time")
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

/// The patterns of one condition, which are counted before it is taken: whoever saves it, or asks
/// by it, could otherwise keep a processor busy without any record being looked at.
final class ConditionPatterns: Sendable {
    /// The patterns of a condition.
    static let most = 100
    /// The instructions of all of them together: some 50 ms at worst.
    static let mostInstructions = 40_000
    /// What a pattern takes that is refused while it is compiled, about.
    private static let refused = 10_000

    private struct Counted {
        var patterns = 0
        var instructions = 0
    }

    private let counted = Mutex(Counted())

    /// Compiles the next pattern of the condition.
    ///
    /// - Throws: ``RegularExpressionRefusal`` if it is broken, or one too many.
    func compile(
        _ name: CompiledExpressions.Name
    ) throws(RegularExpressionRefusal) -> RE2Expression {
        let count = counted.withLock { counted in
            counted.patterns += 1
            return counted.patterns
        }
        guard count <= Self.most else {
            throw RegularExpressionRefusal("a condition has \(Self.most) patterns at the most")
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
                "the condition's patterns are too large together: "
                    + "\(instructions) instructions, and \(Self.mostInstructions) are allowed")
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
