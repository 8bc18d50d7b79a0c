/// What must be known of a subscription to take it out again, beside the hashes of its keys.
///
/// In a block of the arena: two words of header, of which the place of the key's length says what
/// follows; the hashes; two words of programs; two words of a lower bound.
struct FilingRecord {
    var keys = 1
    var rest: UInt32 = 0
    var whole: UInt32 = 0
    var isResidual = false
    /// The lower bound of its interval as filed, where it is among many.
    var low: Int64?

    private static let programsFlag = 1
    private static let residualFlag = 2
    private static let intervalFlag = 4

    init() {}

    init(_ filing: Filing, keys: Int, needsBound: Bool) {
        self.keys = keys
        rest = filing.rest
        whole = filing.whole
        isResidual = filing.isResidual
        if needsBound { low = filing.interval?.mirrored.low }
    }

    init(_ block: PostingBlock) {
        keys = block.count
        let flags = block.keyLength
        var next = 2 + keys
        isResidual = flags & Self.residualFlag != 0
        if flags & Self.programsFlag != 0 {
            rest = block.base[next]
            whole = block.base[next + 1]
            next += 2
        }
        if flags & Self.intervalFlag != 0 {
            low = RangePosting.load(block.base + next)
        }
    }

    /// Whether there is nothing to know but the hashes.
    var isBare: Bool { !hasPrograms && !isResidual && low == nil }

    private var hasPrograms: Bool { rest != 0 || whole != 0 }

    /// Words of the block.
    var words: Int { 2 + keys + (hasPrograms ? 2 : 0) + (low == nil ? 0 : 2) }

    /// Writes everything but the hashes.
    func store(in block: PostingBlock, sizeClass: Int) {
        let flags =
            (hasPrograms ? Self.programsFlag : 0) | (isResidual ? Self.residualFlag : 0)
            | (low == nil ? 0 : Self.intervalFlag)
        block.setHeader(.filing, sizeClass: sizeClass, keyLength: flags, hasNext: false)
        block.count = keys
        var next = 2 + keys
        if hasPrograms {
            block.base[next] = rest
            block.base[next + 1] = whole
            next += 2
        }
        if let low { RangePosting.store(low, block.base + next) }
    }
}
