import CRE2
public import PredicateLanguage

/// Runs the patterns of MATCHES with RE2, in time proportional to the text for any pattern.
public struct RE2Engine: RegularExpressionEngine {
    private enum Origin {
        /// The pattern is part of a condition that is being checked.
        case condition(ConditionPatterns)
        /// The pattern is part of a condition that was checked earlier.
        case checked
        /// The pattern comes from a record that a condition compares with.
        case record
    }

    private let origin: Origin

    /// Creates the engine for one condition, which may have at most 100 patterns with 40,000
    /// instructions together.
    public init() {
        self.init(origin: .condition(ConditionPatterns()))
    }

    private init(origin: Origin) {
        self.origin = origin
    }

    /// An engine for conditions that were checked earlier.
    ///
    /// It compiles a pattern when a text is first matched against it, and refuses nothing.
    public static var ofCheckedConditions: RE2Engine { RE2Engine(origin: .checked) }

    /// The engine for patterns that come from records; the steps of an evaluation limit them.
    public var ofRecords: any RegularExpressionEngine { RE2Engine(origin: .record) }

    /// Compiles an ICU regular expression.
    ///
    /// - Throws: `RegularExpressionRefusal` if the pattern is broken, cannot be matched in linear
    ///   time, or exceeds a limit of its condition.
    public func compile(
        _ pattern: String, ignoringCase: Bool
    ) throws(RegularExpressionRefusal) -> any CompiledExpression {
        let name = CompiledExpressions.Name(pattern: pattern, ignoresCase: ignoringCase)
        return switch origin {
        case .condition(let patterns): try patterns.compile(name)
        case .checked: LazyExpression(name)
        case .record: try CompiledExpressions.shared.expression(name)
        }
    }
}

/// A regular expression that matches whole texts in time proportional to their length.
///
/// `@unchecked Sendable`: the stored properties are constants, and the pointer is to a compiled
/// expression, which RE2 documents as usable by any number of threads at once. It is freed with the
/// last reference, when no thread can be matching with it.
final class RE2Expression: CompiledExpression, @unchecked Sendable {
    private let compiled: OpaquePointer
    /// The number of instructions, which is the worst-case number of steps for each byte of a text.
    let size: Int
    /// The length of the longest text that is matched, in bytes.
    private let maximumTextBytes: Int

    /// The maximum number of steps of one match: about a second at worst.
    static let maximumSteps = 500_000_000

    /// The maximum memory for one compiled expression and its automaton, in bytes.
    static let memoryBudget: Int64 = 1 << 20

    /// Compiles a pattern in ICU syntax.
    convenience init(_ name: CompiledExpressions.Name) throws(RegularExpressionRefusal) {
        try self.init(
            try RegularExpressionTranslation.translate(name.pattern),
            ignoringCase: name.ignoresCase)
    }

    /// The approximate memory in bytes: the instructions for both directions, and a part of the
    /// automaton.
    var bytes: Int { 16_384 + size * 64 }

    /// Compiles a pattern in RE2's own syntax.
    init(_ pattern: String, ignoringCase: Bool) throws(RegularExpressionRefusal) {
        var status = BELFRY_RE2_OK
        var offender = [CChar](repeating: 0, count: 64)
        let compiled = pattern.withCString { text in
            belfry_re2_compile(
                text, pattern.utf8.count,
                ignoringCase ? BELFRY_RE2_CASE_IGNORED : BELFRY_RE2_CASE_EXACT,
                Self.memoryBudget, &status, &offender, offender.count)
        }
        guard let compiled else {
            let blamed = offender.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw RegularExpressionRefusal(status, String(decoding: blamed, as: UTF8.self))
        }
        self.compiled = compiled
        size = max(Int(belfry_re2_size(compiled)), 1)
        maximumTextBytes = Self.maximumSteps / size
    }

    deinit {
        belfry_re2_free(compiled)
    }

    /// Returns whether the whole of `text` matches; `nil` if the text is so long that a hostile
    /// expression of this size could take more than ``maximumSteps``.
    func matchesWhole(_ text: String) -> Bool? {
        guard text.utf8.count <= maximumTextBytes else { return nil }
        var text = text
        return text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                belfry_re2_matches_whole(compiled, characters.baseAddress, characters.count)
            }
        }
    }
}

extension RegularExpressionRefusal {
    init(_ status: belfry_re2_status, _ offender: String) {
        let reason =
            switch status {
            case BELFRY_RE2_TOO_LARGE: "it is too large when compiled"
            case BELFRY_RE2_GROUP:
                "`\(offender)` is not supported; look-around and atomic groups are not,"
                    + " because they cannot be matched in linear time"
            case BELFRY_RE2_ESCAPE where offender.last?.isNumber == true:
                "`\(offender)` is a back-reference, which cannot be matched in linear time"
            case BELFRY_RE2_ESCAPE: "the escape `\(offender)` is not supported"
            default: "`\(offender)` is not well-formed"
            }
        self.init(reason)
    }
}
