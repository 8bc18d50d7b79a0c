import PredicateLanguage

/// The POSIX classes, which cover all scripts in ICU and only ASCII in RE2.
extension RegularExpressionTranslation {
    /// Returns the content of an RE2 set for a class of ICU (UTS #18, annex C).
    ///
    /// - Throws: ``RegularExpressionRefusal`` for an unknown class.
    static func content(ofClass name: String) throws(RegularExpressionRefusal) -> String {
        switch name.lowercased() {
        case "alpha": return letters
        case "alnum": return letters + "\\p{Nd}"
        case "lower": return "\\p{Ll}" + smallSigns
        case "upper": return "\\p{Lu}" + capitalSigns
        case "digit": return "\\p{Nd}"
        case "xdigit": return "\\p{Nd}A-Fa-f\\x{ff21}-\\x{ff26}\\x{ff41}-\\x{ff46}"
        case "space": return spaceClass
        case "blank": return "\\t\\p{Zs}"
        case "punct": return "\\p{P}"
        case "cntrl": return "\\p{Cc}"
        case "graph": return graphic
        case "print": return graphic + "\\p{Zs}"
        case "word": return wordClass
        case "ascii": return "\\x{00}-\\x{7f}"
        default:
            throw RegularExpressionRefusal(
                "the class `[:\(name.prefix(60)):]` is not supported; there are alpha, alnum, "
                    + "lower, upper, digit, xdigit, space, blank, punct, cntrl, graph, print, word")
        }
    }

    private static let graphic = "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}"

    private static let letters =
        "\\p{L}\\p{Nl}"
        + signs(
            where: \.isAlphabetic,
            except: [
                .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter,
                .otherLetter, .letterNumber,
            ])
    private static let smallSigns = signs(where: \.isLowercase, except: [.lowercaseLetter])
    private static let capitalSigns = signs(where: \.isUppercase, except: [.uppercaseLetter])

    /// Returns the characters that have a property but are in none of `categories`, which RE2 has
    /// names for: vowel signs, circled letters, Roman numerals.
    ///
    /// It takes some milliseconds, once for each property.
    private static func signs(
        where hasProperty: (Unicode.Scalar.Properties) -> Bool,
        except categories: Set<Unicode.GeneralCategory>
    ) -> String {
        var ranges = ""
        var start: UInt32?
        // No such character is beyond this range. Its last value has no property, so it closes an
        // open range.
        for value in UInt32(0x80)...0x20000 {
            let isSign =
                Unicode.Scalar(value).map { scalar in
                    hasProperty(scalar.properties)
                        && !categories.contains(scalar.properties.generalCategory)
                } ?? false
            switch (start, isSign) {
            case (nil, true): start = value
            case (let first?, false):
                let last = String(value - 1, radix: 16)
                ranges += "\\x{\(String(first, radix: 16))}-\\x{\(last)}"
                start = nil
            default: break
            }
        }
        return ranges
    }
}
