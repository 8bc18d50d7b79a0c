import CRE2
import RelayModel

/// A regular expression that matches whole texts in time proportional to their length (RE2).
///
/// Safe to share between threads: the only stored property is a constant pointer to a compiled
/// expression, which RE2 documents as usable by any number of threads at once; it is freed when the
/// last reference is gone, which is when nobody can be matching with it.
final class RegularExpression: @unchecked Sendable {
    private let compiled: OpaquePointer
    /// How many instructions it has: what a byte of a text may take at the worst.
    let size: Int
    /// The longest text that is matched, in bytes.
    private let maximumTextBytes: Int

    /// The steps that one match may take: about a second at the worst.
    static let maximumSteps = 500_000_000

    /// The memory that one compiled expression and its automaton may take.
    static let memoryBudget: Int64 = 1 << 20

    /// Compiles an ICU regular expression.
    ///
    /// - Throws: ``RegularExpressionRefusal`` if it is broken, too long, or beyond what can be
    ///   matched in linear time.
    convenience init(
        icu pattern: String, _ options: RecordPredicate.TextOptions
    ) throws(RegularExpressionRefusal) {
        guard pattern.utf8.count <= Limits.maximumRegularExpressionBytes else {
            throw RegularExpressionRefusal(
                "it is longer than \(Limits.maximumRegularExpressionBytes) bytes")
        }
        let source =
            options.ignoresMarks
            ? TextFolding.fold(pattern, .ignoringDiacritics) : pattern
        try self.init(re2: try RegularExpressionTranslation.translate(source), options)
    }

    private init(
        re2 pattern: String, _ options: RecordPredicate.TextOptions
    ) throws(RegularExpressionRefusal) {
        var status = BELFRY_RE2_OK
        var offender = [CChar](repeating: 0, count: 64)
        let ignoresCase = !options.contains(.normalized) && options.contains(.ignoringCase)
        let compiled = pattern.withCString { text in
            belfry_re2_compile(
                text, pattern.utf8.count,
                ignoresCase ? BELFRY_RE2_CASE_IGNORED : BELFRY_RE2_CASE_EXACT,
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

extension RecordPredicate.TextOptions {
    /// Whether marks are ignored, so that texts and patterns are folded before they are matched.
    var ignoresMarks: Bool {
        !contains(.normalized) && contains(.ignoringDiacritics)
    }
}

/// Why a regular expression is refused.
struct RegularExpressionRefusal: Error, Hashable {
    /// What is wrong with it, as the rest of a sentence that begins "the regular expression is
    /// refused:".
    var reason: String

    init(_ reason: String) {
        self.reason = reason
    }

    init(_ status: belfry_re2_status, _ offender: String) {
        switch status {
        case BELFRY_RE2_TOO_LARGE: reason = "it is too large when compiled"
        case BELFRY_RE2_GROUP:
            reason =
                "`\(offender)` is not supported; look-around and atomic groups are not,"
                + " because they cannot be matched in linear time"
        case BELFRY_RE2_ESCAPE where offender.last?.isNumber == true:
            reason = "`\(offender)` is a back-reference, which cannot be matched in linear time"
        case BELFRY_RE2_ESCAPE: reason = "the escape `\(offender)` is not supported"
        default: reason = "`\(offender)` is not well-formed"
        }
    }
}
