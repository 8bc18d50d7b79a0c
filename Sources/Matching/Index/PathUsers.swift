import RelayModel

/// Finds the subscriptions whose conditions use the values of some paths of a record type.
///
/// It inspects every key of the index, which is done only after a change has taken too long.
struct PathUsers {
    private let core: IndexCore
    private let plan: Int
    private let paths: Set<Int>
    /// The paths that each subscription uses.
    private var users: [UInt32: Set<Int>] = [:]
    private var ofPrograms: [UInt32: Set<Int>] = [:]

    /// The maximum number of subscriptions in the result.
    private static let most = 10_000

    init(of paths: Set<Int>, plan: Int, _ core: IndexCore) {
        self.core = core
        self.plan = plan
        self.paths = paths
    }

    /// Inspects all keys; `dimensions` are indexed by their numbers.
    mutating func find(_ dimensions: [KeyDimension]) {
        let table = core.store.table
        for index in 0...table.mask where table.slots[index] != 0 {
            var offset = KeyTable.block(of: table.slots[index])
            let dimension = dimensions[Int(PostingBlock(core.store.arena, offset).dimension)]
            guard Int(dimension.plan) == plan else { continue }
            let path = dimension.kind == .every ? nil : Int(dimension.path)
            while offset != 0 {
                let block = PostingBlock(core.store.arena, offset)
                visit(block, path)
                offset = block.next
            }
        }
    }

    /// Inspects a block of a key about `path`.
    private mutating func visit(_ block: PostingBlock, _ path: Int?) {
        var common: Set<Int> = []
        if let path, paths.contains(path) { common.insert(path) }
        if block.kind.hasIntervals {
            let path = IntervalKind(block.interval).path
            if paths.contains(path) { common.insert(path) }
        }
        switch block.kind {
        case .plain:
            if common.isEmpty { return }
            for index in 0..<block.count { add(block.postings[index], common) }
        case .guarded, .range, .sorted: visitPostings(of: block, common)
        case .directory:
            for index in 0..<block.count {
                let entry = RangePosting(block.postings + index * 6)
                visitPostings(of: PostingBlock(core.store.arena, entry.word), common)
            }
        case .chunk, .group, .program, .filing: return
        }
    }

    /// Inspects postings that may have a program.
    private mutating func visitPostings(of block: PostingBlock, _ common: Set<Int>) {
        for index in 0..<block.count {
            let posting = block.postings + index * block.stride
            let program = posting[1]
            add(posting[0], program == 0 ? common : common.union(paths(inProgram: program)))
        }
    }

    private mutating func paths(inProgram program: UInt32) -> Set<Int> {
        if let known = ofPrograms[program] { return known }
        let found = core.programs.paths(of: program).intersection(paths)
        ofPrograms[program] = found
        return found
    }

    /// Notes paths for all subscriptions that a posting refers to.
    private mutating func add(_ word: UInt32, _ found: Set<Int>) {
        if found.isEmpty { return }
        guard word & PostingWord.group != 0 else {
            note(word & PostingWord.idMask, found)
            return
        }
        let group = PostingBlock(core.store.arena, word & ~PostingWord.group)
        for member in 0..<group.count {
            note(group.postings[member] & PostingWord.idMask, found)
        }
    }

    private mutating func note(_ id: UInt32, _ found: Set<Int>) {
        guard users.count < Self.most || users[id] != nil else { return }
        users[id, default: []].formUnion(found)
    }

    /// Divides `steps` evenly among the paths, and the share of each path evenly among the
    /// subscriptions that use it.
    ///
    /// `base` has the upper bits of their serials.
    func costs(of steps: Int, _ base: UInt64) -> [DearChange.Cost] {
        var counts: [Int: Int] = [:]
        for found in users.values {
            for path in found { counts[path, default: 0] += 1 }
        }
        let share = Double(steps) / Double(max(counts.count, 1))
        return users.map { id, found in
            let cost = found.reduce(0.0) { $0 + share / Double(counts[$1, default: 1]) }
            return DearChange.Cost(serial: base | UInt64(id), steps: Int(cost))
        }
    }
}

extension RecordTypePlan {
    /// The paths to values inside members, and their folded forms.
    var walkedPaths: Set<Int> {
        var walked: Set<Int> = []
        for path in derived {
            switch paths[path].origin {
            case .members, .viewedMembers, .viewedSteps: walked.insert(path)
            case .folded(let base, _) where walked.contains(base): walked.insert(path)
            case .field, .folded, .record, .viewed: continue
            }
        }
        return walked
    }
}
