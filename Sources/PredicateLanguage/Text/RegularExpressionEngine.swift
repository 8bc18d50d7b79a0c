/// What compiles the patterns of MATCHES.
///
/// The language knows ICU's syntax by name only: whoever prepares predicates says who runs their
/// patterns. The relay has RE2, whose time is proportional to the text whatever the pattern is; an
/// application can do without one (``NoRegularExpressions``).
public protocol RegularExpressionEngine: Sendable {
    /// Compiles a pattern in ICU's syntax.
    ///
    /// - Throws: ``RegularExpressionRefusal`` if it is broken, or beyond what the engine runs.
    func compile(
        _ pattern: String, ignoringCase: Bool
    ) throws(RegularExpressionRefusal) -> any CompiledExpression

    /// What compiles patterns that come from records, and not from the condition; by itself the
    /// same.
    var ofRecords: any RegularExpressionEngine { get }
}

extension RegularExpressionEngine {
    /// The engine itself.
    public var ofRecords: any RegularExpressionEngine { self }
}

/// A compiled pattern, which any number of threads may use at once.
public protocol CompiledExpression: AnyObject, Sendable {
    /// What a byte of a text may take at worst, in the engine's instructions.
    var size: Int { get }

    /// Whether the whole of `text` matches; `nil` if it is too long for a pattern of this size.
    func matchesWhole(_ text: String) -> Bool?
}

/// Why a regular expression is refused.
public struct RegularExpressionRefusal: Error, Hashable {
    /// What is wrong with it, as the rest of a sentence that begins "the regular expression is
    /// refused:".
    public var reason: String
    /// Whether the same one may be taken later: then it is not at fault.
    public var passes: Bool

    /// Refuses a regular expression.
    public init(_ reason: String, passes: Bool = false) {
        self.reason = reason
        self.passes = passes
    }
}

/// No engine: every pattern of MATCHES is refused, everything else works.
public struct NoRegularExpressions: RegularExpressionEngine {
    /// Creates the engine that runs nothing.
    public init() {}

    /// Refuses the pattern.
    public func compile(
        _: String, ignoringCase _: Bool
    ) throws(RegularExpressionRefusal) -> any CompiledExpression {
        throw RegularExpressionRefusal("this program has no engine of regular expressions")
    }
}
