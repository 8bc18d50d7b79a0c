/// One comparison of a program and its jump targets, in three words.
///
/// A program is the predicate's tree in a flat form. AND, OR and NOT exist only as the target of a
/// row when it holds and its target when it fails. This is exactly NSPredicate's order of
/// evaluation, with its short circuits.
struct ProgramRow {
    /// The target that ends the program: the predicate holds.
    static let accept: UInt16 = 0xFFFF
    /// The target that ends the program: the predicate does not hold.
    static let reject: UInt16 = 0xFFFE
    /// The maximum number of rows of one program; the reference evaluator judges longer predicates.
    static let most = 0xFFF0

    var test: RowTest
    /// Whether the row is under an odd number of NOTs.
    var isNegated: Bool
    /// Whether it follows another dialect's rules, under which any scalar in the value's bag may
    /// satisfy it.
    var isLoose: Bool
    var path: UInt16
    /// The start of the constant, in words from the program's first constant.
    ///
    /// For ``RowTest/reference``, the number of the reference row.
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

/// A constant of a program as it is in the arena: four words, then its bytes.
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

    /// The number of words of the constant.
    @inline(__always)
    var words: Int { Self.headerWords + (Int(length) + 3) / 4 }
}
