/// What the index keeps about a subscription, besides the hashes of its keys, to remove it again.
///
/// Its form in an arena block: two header words, in which the field for the key length holds flags
/// for the parts that follow; the hashes; two words for programs; two words for a lower bound.
struct FilingRecord {
    var keys = 1
    var rest: UInt32 = 0
    var whole: UInt32 = 0
    var isResidual = false
    /// The lower bound of its interval as filed, if the interval is one of many under its key.
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

    /// Whether the hashes are all there is to know.
    var isBare: Bool { !hasPrograms && !isResidual && low == nil }

    private var hasPrograms: Bool { rest != 0 || whole != 0 }

    /// The number of words of the block.
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
