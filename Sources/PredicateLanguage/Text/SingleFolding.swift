/// Folds texts in which each character folds independently of its neighbours, which is true of most
/// texts.
///
/// Any other text is decomposed, folded and composed with the standard library's forms. For a
/// megabyte that takes a fifth of a second, and half a second for some texts.
enum SingleFolding {
    /// Returns the folded form of a text, or the composed form if the options fold nothing.
    ///
    /// Returns `nil` if a character may combine with its neighbours or fold to several characters.
    static func fold(_ text: String, _ options: RecordPredicate.TextOptions) -> String? {
        let ignoresCase = options.contains(.ignoringCase)
        let table = tables[number(of: options)]
        var folded = String.UnicodeScalarView()
        folded.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            if scalar.isASCII {
                folded.append(ignoresCase ? TextFolding.foldCase(scalar) : scalar)
            } else if let place = place(of: scalar.value) {
                if table[place] == ignoredMark { continue }
                guard let known = Unicode.Scalar(table[place]), known.value != 0 else {
                    return nil
                }
                folded.append(known)
            } else if isItself(scalar.value) {
                folded.append(scalar)
            } else {
                return nil
            }
        }
        return String(folded)
    }

    /// Returns whether ``fold(_:_:)`` folds a text.
    static func canFold(_ text: String, _ options: RecordPredicate.TextOptions) -> Bool {
        if text.utf8Span.isKnownASCII { return true }
        let table = tables[number(of: options)]
        return text.unicodeScalars.allSatisfy { scalar in
            if scalar.isASCII { return true }
            guard let place = place(of: scalar.value) else { return isItself(scalar.value) }
            return table[place] != 0
        }
    }

    /// Returns the composed form of a character that no mark follows, or `nil` if the tables do not
    /// contain it.
    static func composed(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        if scalar.isASCII || isItself(scalar.value) { return scalar }
        guard let place = place(of: scalar.value), let known = Unicode.Scalar(tables[0][place]),
            known.value != 0
        else { return nil }
        return known
    }

    // MARK: Letters

    /// The folded form of each character for each set of options, 0 if it may depend on neighbours,
    /// or ``ignoredMark``.
    private static let tables: [[UInt32]] = (0..<4).map { number in
        var options: RecordPredicate.TextOptions = []
        if number & 1 != 0 { options.insert(.ignoringCase) }
        if number & 2 != 0 { options.insert(.ignoringDiacritics) }
        return table(options)
    }

    /// Stands in the tables for a mark that the options ignore, whatever is around it.
    private static let ignoredMark = UInt32.max

    private static func table(_ options: RecordPredicate.TextOptions) -> [UInt32] {
        letters.flatMap { range in range.map { single($0, options) } }
    }

    /// Latin, Greek, Cyrillic, Armenian, Hebrew and Arabic letters, and the characters between
    /// them.
    private static let letters: [Range<UInt32>] = [0x80..<0x700, 0x1E00..<0x2000]

    /// Returns the index of a character in the tables.
    private static func place(of value: UInt32) -> Int? {
        switch value {
        case 0x80..<0x700: Int(value) - 0x80
        case 0x1E00..<0x2000: Int(value) - 0x1E00 + 0x700 - 0x80
        default: nil
        }
    }

    private static func number(of options: RecordPredicate.TextOptions) -> Int {
        (options.contains(.ignoringCase) ? 1 : 0) + (options.contains(.ignoringDiacritics) ? 2 : 0)
    }

    private static func single(
        _ value: UInt32, _ options: RecordPredicate.TextOptions
    ) -> UInt32 {
        guard let scalar = Unicode.Scalar(value) else { return 0 }
        guard standsAlone(scalar) else {
            let isIgnored = options.contains(.ignoringDiacritics) && TextFolding.isMark(scalar)
            return isIgnored ? ignoredMark : 0
        }
        let folded = TextFolding.foldWholly(String(Character(scalar)), options).unicodeScalars
        guard folded.count == 1, let first = folded.first, standsAlone(first) else { return 0 }
        return first.value
    }

    /// Returns whether a character is not a mark.
    ///
    /// Among these characters, only marks combine with the character before them.
    private static func standsAlone(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: false
        default: true
        }
    }

    // MARK: What folds to itself

    /// Returns whether a character belongs to a block without case, without marks and without
    /// alternative spellings: punctuation, currencies, kana, ideographs, Hangul syllables,
    /// full-width digits, emoji.
    private static func isItself(_ value: UInt32) -> Bool {
        switch value {
        case 0x4E00...0x9FFF, 0xAC00...0xD7A3, 0x3041...0x3096, 0x309D...0x30FF, 0x3001...0x3029,
            0x200B...0x2027, 0x2030...0x205E, 0x20A0...0x20BF, 0x3400...0x4DBF, 0xFE0E...0xFE0F,
            0xFF01...0xFF20, 0x1F000...0x1FAFF, 0x20000...0x2A6DF:
            true
        default: false
        }
    }
}
