import CRE2
public import PredicateLanguage

/// Runs the patterns of MATCHES with RE2: whatever the pattern is, in time proportional to the
/// text.
public struct RE2Engine: RegularExpressionEngine {
    private enum Origin {
        /// A condition that is being checked.
        case condition(ConditionPatterns)
        /// A condition that was checked before.
        case checked
        /// A record, with which a condition compares.
        case record
    }

    private let origin: Origin

    /// Creates the engine for one condition, which has 100 patterns at most, of 40,000
    /// instructions together.
    public init() {
        self.init(origin: .condition(ConditionPatterns()))
    }

    private init(origin: Origin) {
        self.origin = origin
    }

    /// The engine for conditions that were checked before: it compiles what a text is matched
    /// against, when that happens, and refuses nothing.
    public static var ofCheckedConditions: RE2Engine { RE2Engine(origin: .checked) }

    /// The engine for patterns that come from records, which an evaluation's steps bound.
    public var ofRecords: any RegularExpressionEngine { RE2Engine(origin: .record) }

    /// Compiles an ICU regular expression.
    ///
    /// - Throws: `RegularExpressionRefusal` if it is broken, beyond what is matched in linear time,
    ///   or one too many of its condition.
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
/// Safe to share between threads: the only stored property is a constant pointer to a compiled
/// expression, which RE2 documents as usable by any number of threads at once; it is freed when the
/// last reference is gone, which is when nobody can be matching with it.
final class RE2Expression: CompiledExpression, @unchecked Sendable {
    private let compiled: OpaquePointer
    /// How many instructions it has: what a byte of a text may take at worst.
    let size: Int
    /// The longest text that is matched, in bytes.
    private let maximumTextBytes: Int

    /// The steps that one match may take: about a second at worst.
    static let maximumSteps = 500_000_000

    /// The memory that one compiled expression and its automaton may take.
    static let memoryBudget: Int64 = 1 << 20

    /// Compiles a pattern in ICU's language.
    convenience init(_ name: CompiledExpressions.Name) throws(RegularExpressionRefusal) {
        try self.init(
            try RegularExpressionTranslation.translate(name.pattern),
            ignoringCase: name.ignoresCase)
    }

    /// What it takes, about: the instructions, once for each direction, and some automaton.
    var bytes: Int { 16_384 + size * 64 }

    /// Compiles a pattern in RE2's own language.
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

    /// Whether the whole of `text` matches; `nil` if the text is so long that a hostile expression
    /// of this size could take longer than ``maximumSteps``.
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
