import CRE2
public import PredicateLanguage

/// Runs the patterns of MATCHES with RE2: whatever the pattern is, in time proportional to the
/// text.
public struct RE2Engine: RegularExpressionEngine {
    /// Creates the engine, which holds nothing.
    public init() {}

    /// Compiles an ICU regular expression.
    ///
    /// - Throws: `RegularExpressionRefusal` if it is broken, or beyond what is matched in linear
    ///   time.
    public func compile(
        _ pattern: String, ignoringCase: Bool
    ) throws(RegularExpressionRefusal) -> any CompiledExpression {
        try RE2Expression(
            try RegularExpressionTranslation.translate(pattern), ignoringCase: ignoringCase)
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
