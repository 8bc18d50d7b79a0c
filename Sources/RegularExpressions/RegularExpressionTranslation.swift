import PredicateLanguage

/// Translates an ICU regular expression, the syntax that NSPredicate uses, into RE2's syntax.
///
/// The two differ in the meaning of `.`, `\d`, `\w`, `\s`, `\v` and `[:alpha:]` (ICU: all line
/// ends, all scripts), in character codes, in braces that do not begin a number of repetitions, and
/// in sets within sets, which RE2 would silently read differently. Back-references and look-around
/// have no translation and are refused.
struct RegularExpressionTranslation {
    private let scalars: [Unicode.Scalar]
    private var index = 0
    private var output = ""
    /// Whether `.` excludes line ends; a `(?s)` anywhere in the pattern leaves all dots as they
    /// are.
    private let pointExcludesLineEnds: Bool

    private init(_ pattern: String) {
        scalars = Array(pattern.unicodeScalars)
        pointExcludesLineEnds = !Self.setsSingleLine(scalars)
    }

    /// Translates a pattern.
    ///
    /// - Throws: ``RegularExpressionRefusal`` for syntax that RE2 would read differently.
    static func translate(_ pattern: String) throws(RegularExpressionRefusal) -> String {
        var translation = RegularExpressionTranslation(pattern)
        try translation.run()
        return translation.output
    }

    /// Circled and squared letters are alphabetic as well.
    static let wordClass =
        "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}"
        + "\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
    /// Everything that Unicode calls white space.
    ///
    /// ICU behaves this way, although its documentation names fewer characters.
    static let spaceClass = "\\t-\\r\\x{85}\\p{Z}"
    private static let lineEnds = "\\n\\r\\x{0b}\\x{0c}\\x{85}\\x{2028}\\x{2029}"

    /// Returns whether a group such as `(?s)` or `(?is:` occurs.
    private static func setsSingleLine(_ scalars: [Unicode.Scalar]) -> Bool {
        guard scalars.count > 3 else { return false }
        for start in 0..<(scalars.count - 2)
        where scalars[start] == "(" && scalars[start + 1] == "?" {
            for scalar in scalars[(start + 2)...] {
                if scalar == "s" { return true }
                guard ["i", "m", "x", "w"].contains(scalar) else { break }
            }
        }
        return false
    }

    private func peek(_ offset: Int = 0) -> Unicode.Scalar? {
        index + offset < scalars.count ? scalars[index + offset] : nil
    }

    private mutating func run() throws(RegularExpressionRefusal) {
        while let scalar = peek() {
            index += 1
            switch scalar {
            case "\\": try escape(inSet: false)
            case "[": try set()
            case "." where pointExcludesLineEnds:
                output += "[^\(Self.lineEnds)]"
            case "(" where peek() == "?": try group()
            case "{": try checkRepetitions()
            case "*", "+", "?", "}":
                output.unicodeScalars.append(scalar)
                if peek() == "+" {
                    throw RegularExpressionRefusal(
                        "the possessive `\(scalar)+` cannot be matched in linear time")
                }
            default: output.unicodeScalars.append(scalar)
            }
        }
    }

    /// RE2 takes a brace that begins no number of repetitions literally; ICU refuses it.
    private mutating func checkRepetitions() throws(RegularExpressionRefusal) {
        var end = index
        var commas = 0
        while end < scalars.count, scalars[end] != "}" {
            if scalars[end] == ",", end > index {
                commas += 1
            } else if !("0"..."9").contains(scalars[end]) {
                break
            }
            end += 1
        }
        guard end > index, end < scalars.count, scalars[end] == "}", commas < 2 else {
            throw RegularExpressionRefusal(
                "`{` begins a number of repetitions, `{2}`, `{2,}` or `{2,5}`; "
                    + "write `\\{` for the brace itself")
        }
        output += "{"
    }

    /// A named group becomes a plain group, because nothing can refer to it.
    private mutating func group() throws(RegularExpressionRefusal) {
        guard peek(1) == "<", let next = peek(2), next != "=", next != "!" else {
            output += "("
            return
        }
        while let scalar = peek(), scalar != ">" { index += 1 }
        index += 1
        output += "(?:"
    }

    private mutating func escape(inSet: Bool) throws(RegularExpressionRefusal) {
        guard let letter = peek() else {
            output += "\\"
            return
        }
        index += 1
        switch letter {
        case "d": output += "\\p{Nd}"
        case "D": output += "\\P{Nd}"
        case "w": output += inSet ? Self.wordClass : "[\(Self.wordClass)]"
        case "s": output += inSet ? Self.spaceClass : "[\(Self.spaceClass)]"
        case "W" where !inSet: output += "[^\(Self.wordClass)]"
        case "S" where !inSet: output += "[^\(Self.spaceClass)]"
        case "W", "S":
            throw RegularExpressionRefusal("`\\\(letter)` inside a set is not supported")
        case "u": try code(digits: 4)
        case "U": try code(digits: 8)
        case "e": output += "\\x{1b}"
        case "v": output += inSet ? Self.lineEnds : "[\(Self.lineEnds)]"
        case "0": try octal()
        case "1"..."9":
            // RE2 would read two digits as a character code.
            throw RegularExpressionRefusal(
                "`\\\(letter)` is a back-reference, which cannot be matched in linear time")
        case "C", "N":
            throw RegularExpressionRefusal("the escape `\\\(letter)` is not supported")
        case "Q": quoted()
        case "p", "P", "x": named(letter)
        default:
            output += "\\"
            output.unicodeScalars.append(letter)
        }
    }

    /// Copies `\p{L}` or `\x{1F600}` with its braces, which do not begin a number of repetitions.
    private mutating func named(_ letter: Unicode.Scalar) {
        output += "\\"
        output.unicodeScalars.append(letter)
        guard peek() == "{" else { return }
        while let scalar = peek() {
            index += 1
            output.unicodeScalars.append(scalar)
            if scalar == "}" { return }
        }
    }

    private mutating func code(digits: Int) throws(RegularExpressionRefusal) {
        var text = ""
        while text.utf8.count < digits, let scalar = peek(), scalar.properties.isASCIIHexDigit {
            text.unicodeScalars.append(scalar)
            index += 1
        }
        guard text.utf8.count == digits else {
            throw RegularExpressionRefusal("a character code needs \(digits) hexadecimal digits")
        }
        output += "\\x{\(text)}"
    }

    /// Translates `\0101`, a character as one to three octal digits.
    private mutating func octal() throws(RegularExpressionRefusal) {
        var value: UInt32 = 0
        var count = 0
        while count < 3, let scalar = peek(), ("0"..."7").contains(scalar) {
            let longer = value * 8 + scalar.value - 0x30
            guard longer < 0x100 else { break }
            value = longer
            count += 1
            index += 1
        }
        guard count > 0 else {
            throw RegularExpressionRefusal("`\\0` needs one to three octal digits")
        }
        output += "\\x{\(String(value, radix: 16))}"
    }

    /// Translates `\Q…\E`, between which every character is literal.
    private mutating func quoted() {
        while let scalar = peek() {
            if scalar == "\\", peek(1) == "E" {
                index += 2
                return
            }
            output += "\\x{\(String(scalar.value, radix: 16))}"
            index += 1
        }
    }

    /// Translates a set up to its `]`.
    private mutating func set() throws(RegularExpressionRefusal) {
        output += "["
        if let name = className() {
            // A class on its own is a set.
            if name.isNegated { output += "^" }
            output += try Self.content(ofClass: name.name)
            output += "]"
            return
        }
        if peek() == "^" {
            output += "^"
            index += 1
        }
        var isFirst = true
        while let scalar = peek() {
            index += 1
            switch scalar {
            case "]" where !isFirst:
                output += "]"
                return
            case "\\": try escape(inSet: true)
            case "[":
                if let name = className() {
                    guard !name.isNegated else {
                        throw RegularExpressionRefusal(
                            "`[:^\(name.name):]` inside a set is not supported; "
                                + "write `[^[:\(name.name):]]`")
                    }
                    output += try Self.content(ofClass: name.name)
                    break
                }
                throw RegularExpressionRefusal(
                    "sets within sets are not supported; write `\\[` for the bracket itself")
            case "&" where peek() == "&", "-" where peek() == "-":
                throw RegularExpressionRefusal("`\(scalar)\(scalar)` in a set is not supported")
            default: output.unicodeScalars.append(scalar)
            }
            isFirst = false
        }
        throw RegularExpressionRefusal("a set is not closed")
    }

    /// Reads the rest of `[:alpha:]` after its bracket; returns `nil`, without reading, if the text
    /// is not a class.
    private mutating func className() -> (name: String, isNegated: Bool)? {
        guard peek() == ":" else { return nil }
        let isNegated = peek(1) == "^"
        var end = index + (isNegated ? 2 : 1)
        var name = ""
        while end < scalars.count, scalars[end].properties.isAlphabetic || scalars[end] == "_" {
            name.unicodeScalars.append(scalars[end])
            end += 1
        }
        guard !name.isEmpty, end + 1 < scalars.count, scalars[end] == ":", scalars[end + 1] == "]"
        else { return nil }
        index = end + 2
        return (name, isNegated)
    }
}
