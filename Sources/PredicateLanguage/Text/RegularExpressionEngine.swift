/// An engine that compiles the patterns of MATCHES.
///
/// This module does not interpret ICU's syntax. The code that prepares predicates chooses the
/// engine. The relay uses RE2, whose time is linear in the length of the text for every pattern. An
/// application can do without an engine (``NoRegularExpressions``).
public protocol RegularExpressionEngine: Sendable {
    /// Compiles a pattern in ICU's syntax.
    ///
    /// - Throws: ``RegularExpressionRefusal`` if the pattern is malformed, or the engine does not
    ///   support it.
    func compile(
        _ pattern: String, ignoringCase: Bool
    ) throws(RegularExpressionRefusal) -> any CompiledExpression

    /// The engine for patterns that come from records, and not from the condition. By default, it
    /// is this engine.
    var ofRecords: any RegularExpressionEngine { get }
}

extension RegularExpressionEngine {
    /// The engine itself.
    public var ofRecords: any RegularExpressionEngine { self }
}

/// A compiled pattern, which any number of threads may use at the same time.
public protocol CompiledExpression: AnyObject, Sendable {
    /// The worst-case cost of matching one byte of a text, in the engine's instructions.
    var size: Int { get }

    /// Returns whether the pattern matches the whole of `text`, or `nil` if the text is too long
    /// for a pattern of this size.
    func matchesWhole(_ text: String) -> Bool?
}

/// The reason why a regular expression is refused.
public struct RegularExpressionRefusal: Error, Hashable {
    /// What is wrong with the expression.
    ///
    /// It completes the sentence "the regular expression is refused:".
    public var reason: String
    /// Whether the engine may accept the same expression later.
    ///
    /// Then the expression itself is not at fault.
    public var passes: Bool

    /// Creates a refusal for a reason, which by default is permanent.
    public init(_ reason: String, passes: Bool = false) {
        self.reason = reason
        self.passes = passes
    }
}

/// The absence of an engine: every pattern of MATCHES is refused, and everything else works.
public struct NoRegularExpressions: RegularExpressionEngine {
    /// Creates an engine that refuses every pattern.
    public init() {}

    /// Throws for every pattern.
    public func compile(
        _: String, ignoringCase _: Bool
    ) throws(RegularExpressionRefusal) -> any CompiledExpression {
        throw RegularExpressionRefusal("this program has no regular expression engine")
    }
}
