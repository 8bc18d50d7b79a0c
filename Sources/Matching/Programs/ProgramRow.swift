/// One comparison of a program, and where to go from it: three words.
///
/// A program is the predicate's tree laid flat: AND, OR and NOT are nothing but where a row leads
/// when it holds and when it does not, which is NSPredicate's order of evaluation and its
/// short-circuit exactly.
struct ProgramRow {
    /// Leads to the end: the predicate holds.
    static let accept: UInt16 = 0xFFFF
    /// Leads to the end: it does not.
    static let reject: UInt16 = 0xFFFE
    /// Rows of one program; longer predicates are judged by the reference evaluator.
    static let most = 0xFFF0

    var test: RowTest
    /// Whether the row stands under an odd number of NOTs.
    var isNegated: Bool
    /// Whether it follows another dialect's rules: any scalar in the value's bag may satisfy it.
    var isLoose: Bool
    var path: UInt16
    /// Where the constant begins, in words from the program's first constant; of
    /// ``RowTest/reference`` the number of the comparison.
    var constant: UInt32
    var onTrue: UInt16
    var onFalse: UInt16

    var words: (UInt32, UInt32, UInt32) {
        (
            UInt32(test.rawValue) | (isNegated ? 1 << 8 : 0) | (isLoose ? 1 << 9 : 0)
                | UInt32(path) << 16, constant,
            UInt32(onTrue) | UInt32(onFalse) << 16
        )
    }

    @inline(__always)
    init(_ words: UnsafePointer<UInt32>) {
        test = RowTest(rawValue: UInt8(truncatingIfNeeded: words[0])) ?? .reference
        isNegated = words[0] & 1 << 8 != 0
        isLoose = words[0] & 1 << 9 != 0
        path = UInt16(truncatingIfNeeded: words[0] >> 16)
        constant = words[1]
        onTrue = UInt16(truncatingIfNeeded: words[2])
        onFalse = UInt16(truncatingIfNeeded: words[2] >> 16)
    }

    init(
        _ test: RowTest, isNegated: Bool, isLoose: Bool = false, path: Int, constant: UInt32,
        onTrue: UInt16, onFalse: UInt16
    ) {
        self.test = test
        self.isNegated = isNegated
        self.isLoose = isLoose
        self.path = UInt16(path)
        self.constant = constant
        self.onTrue = onTrue
        self.onFalse = onFalse
    }
}

/// A constant of a program as it stands in the arena: four words, then its bytes.
struct RowConstant {
    let kind: ValueClass
    let tail: UInt16
    let length: UInt32
    let order: Int64
    let bytes: UnsafePointer<UInt8>

    static let headerWords = 4

    @inline(__always)
    init(_ words: UnsafePointer<UInt32>) {
        kind = ValueClass(rawValue: UInt8(truncatingIfNeeded: words[0])) ?? .unknown
        tail = UInt16(truncatingIfNeeded: words[0] >> 16)
        length = words[1]
        order = Int64(bitPattern: UInt64(words[2]) | UInt64(words[3]) << 32)
        bytes = UnsafeRawPointer(words + 4).assumingMemoryBound(to: UInt8.self)
    }

    /// The words that the constant takes.
    @inline(__always)
    var words: Int { Self.headerWords + (Int(length) + 3) / 4 }
}
