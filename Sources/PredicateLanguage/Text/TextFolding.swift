/// The forms of texts that comparisons use: composed (NFC), and folded as the options require.
enum TextFolding {
    /// Returns the composed and folded form of `text`.
    ///
    /// Case folding is Unicode's simple folding, which maps one character to one. So `ß` is not
    /// `ss`, and there is no exception for Turkish. Ignored marks are those that combine above or
    /// below a letter. The signs of Indic scripts and the Kana voicing marks are parts of letters,
    /// and stay.
    static func fold(_ text: String, _ options: RecordPredicate.TextOptions) -> String {
        if options.contains(.normalized) { return text }
        guard options.contains(.ignoringCase) || options.contains(.ignoringDiacritics) else {
            return isComposed(text) ? text : composed(text)
        }
        if text.utf8Span.isKnownASCII {
            return options.contains(.ignoringCase) ? text.lowercased() : text
        }
        return SingleFolding.fold(text, options) ?? foldWholly(text, options)
    }

    /// Returns the composed and folded form of `text`, without the shortcut for simple characters.
    static func foldWholly(_ text: String, _ options: RecordPredicate.TextOptions) -> String {
        var folded = String.UnicodeScalarView()
        folded.reserveCapacity(text.utf8.count)
        for scalar in text.decomposedScalars {
            if options.contains(.ignoringDiacritics), isMark(scalar) { continue }
            folded.append(options.contains(.ignoringCase) ? foldCase(scalar) : scalar)
        }
        return composeWholly(String(folded))
    }

    /// Returns the composed form (NFC) of `text`, in time proportional to its length.
    static func composed(_ text: String) -> String {
        SingleFolding.fold(text, []) ?? composeWholly(text)
    }

    /// Returns the composed form of `text`, without the shortcut for simple characters.
    private static func composeWholly(_ text: String) -> String {
        var composed = String.UnicodeScalarView()
        composed.reserveCapacity(text.utf8.count)
        for scalar in text.composedScalars { composed.append(scalar) }
        return String(composed)
    }

    /// Returns whether `text` is known to be composed.
    ///
    /// `false` means that it may not be.
    ///
    /// Characters below U+0300, Cyrillic letters, Chinese characters and most emoji need no
    /// look-up.
    static func isComposed(_ text: String) -> Bool {
        let utf8 = text.utf8Span
        if utf8.isKnownASCII || utf8.isKnownNFC { return true }
        let bytes = utf8.span
        for index in bytes.indices {
            switch bytes[index] {
            case 0x00..<0xCC, 0xD0, 0xD1, 0xE4...0xE9: continue
            default: return false
            }
        }
        return true
    }

    /// Returns Unicode's simple case folding of a character.
    static func foldCase(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        if scalar.isASCII {
            return scalar.value &- 0x41 < 26 ? Unicode.Scalar(UInt8(scalar.value) | 0x20) : scalar
        }
        // Most characters have no case. To ask for a mapping takes as long as all the rest.
        guard scalar.properties.changesWhenCaseMapped else { return scalar }
        // Dotless i folds to itself, although its upper-case letter is I.
        if scalar == "\u{131}" { return scalar }
        let upper = single(scalar.properties.uppercaseMapping) ?? scalar
        return single(upper.properties.lowercaseMapping) ?? upper
    }

    private static func single(_ mapping: String) -> Unicode.Scalar? {
        let scalars = mapping.unicodeScalars
        return scalars.count == 1 ? scalars.first : nil
    }

    /// Returns whether `scalar` is a mark on a letter, such as an accent, a Hebrew point or an
    /// Arabic vowel.
    static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.value >= 0x300, scalar.properties.generalCategory == .nonspacingMark else {
            return false
        }
        // Classes without diacritics: 0, and 6 to 9 for Han reading marks, nuktas, Kana voicing
        // marks and viramas.
        let combining = scalar.properties.canonicalCombiningClass.rawValue
        return combining == 1 || combining >= 10
    }
}

extension RecordPredicate.TextOptions {
    /// Whether texts must be folded before they are compared.
    var folds: Bool {
        !contains(.normalized) && (contains(.ignoringCase) || contains(.ignoringDiacritics))
    }
}
