import RelayModel

/// The working memory of a reader, which it keeps from one change to the next.
struct MatchScratch: ~Copyable {
    /// The numbers of the fired subscriptions, with repetitions and in ascending runs.
    var ids = GrowingBuffer<UInt32>(capacity: 1024)
    /// The same subscriptions as serials, ascending and without repetitions.
    var answer = GrowingBuffer<UInt64>(capacity: 1024)
    /// Working memory for sorting.
    var spare = GrowingBuffer<UInt32>(capacity: 1024)
    /// For each key of the change, its first block; 0 if there is none.
    var heads = GrowingBuffer<UInt32>(capacity: 64)
    /// Depends on all loads that only warm the cache, so that the compiler cannot remove them.
    var touched: UInt64 = 0
    /// The number of candidates that a program or an interval had to verify.
    var candidates: UInt64 = 0
    /// The number of candidates that were confirmed.
    var confirmed: UInt64 = 0
    /// The number of programs that were run.
    var runs: UInt64 = 0
    /// The program that was last run on this change, and its verdict.
    var lastProgram: UInt32 = 0
    var lastVerdict = Verdict.doesNotFire
    /// The number of steps of the current change, over all its programs.
    var steps = 0
    /// The maximum number of steps of one match; beyond it, no further condition is judged.
    var mostSteps = Limits.maximumStepsPerChange
    /// Whether a subscription may be judged, by its serial; `nil` if all may.
    var mayJudge: ((UInt64) -> Bool)?
    /// Whether users are asked about before a condition is evaluated, however many share it.
    var asksFirst = false
    /// The number of steps of conditions that were evaluated before their users were asked about.
    var unaskedSteps = 0
    /// The upper bits of the serials of the core that is matched.
    var base: UInt64 = 0
    /// Evaluations that took many of the steps.
    var dear: [DearPosting] = []
    /// The number of evaluation errors by subscription.
    var errors: [UInt32: UInt64] = [:]
    /// The number of evaluation errors on the current change by serial.
    var changeErrors: [(serial: UInt64, count: UInt64)] = []
    /// The number of evaluation errors by serial, until a writer takes them over.
    var serialErrors: [UInt64: UInt64] = [:]
    /// The serials of subscriptions that had an evaluation error on the current change.
    var erring: [UInt64] = []
    /// The number of changes matched.
    var changes: UInt64 = 0
    /// The number of subscriptions fired.
    var matches: UInt64 = 0
}

/// An evaluation that took many steps, and the posting that it was for.
struct DearPosting {
    var word: UInt32
    var steps: Int
}

extension IndexCore {
    /// Collects the subscriptions that a change fires.
    @inline(__always)
    func match(_ change: DecodedChange, _ scratch: inout MatchScratch) {
        scratch.ids.count = 0
        scratch.lastProgram = 0
        if !scratch.dear.isEmpty { scratch.dear.removeAll() }
        let count = change.probes.count
        scratch.heads.count = 0
        scratch.heads.reserve(count)
        let table = store.table
        // Cache misses dominate the cost of a match. Loads that do not depend on each other or on
        // branches run at the same time, so all slots are loaded first, and then all blocks.
        var touched: UInt64 = 0
        if count > 1 {
            for index in 0..<count {
                touched &+= table.slots[Int(change.probes.base[index].hash) & table.mask]
            }
        }
        for index in 0..<count {
            scratch.heads.base[index] = first(table, change.probes.base[index].hash)
        }
        if count > 1 {
            let words = store.arena.base
            for index in 0..<count {
                touched &+= UInt64(words[Int(scratch.heads.base[index])])
            }
        }
        scratch.touched = touched
        for index in 0..<count {
            let head = scratch.heads.base[index]
            if head != 0 { visit(change.probes.base[index], head, change, &scratch) }
        }
    }

    @inline(__always)
    private func first(_ table: KeyTable, _ hash: UInt32) -> UInt32 {
        let index = table.next(hash, from: Int(hash))
        return index < 0 ? 0 : KeyTable.block(of: table.slots[index])
    }

    /// Follows one key of the change.
    @inline(__always)
    private func visit(
        _ probe: Probe, _ head: UInt32, _ change: DecodedChange, _ scratch: inout MatchScratch
    ) {
        var head = head
        let key = UnsafePointer(change.encoder.bytes.base + Int(probe.offset))
        if !store.has(head, probe, key) {
            let slot = store.slot(probe.hash, probe.dimension, key, Int(probe.length))
            if slot < 0 { return }
            head = KeyTable.block(of: store.table.slots[slot])
        }
        while head != 0 {
            let block = PostingBlock(store.arena, head)
            switch block.kind {
            case .plain: plain(block.postings, block.count, change.operation, &scratch)
            case .range: range(block, change, &scratch)
            case .sorted: sorted(block, change, &scratch)
            case .directory: directory(block, change, &scratch)
            case .guarded: guarded(block, change, &scratch)
            case .chunk, .group, .program, .filing: break
            }
            head = block.next
        }
    }

    @inline(__always)
    private func plain(
        _ words: UnsafePointer<UInt32>, _ count: Int, _ operation: FiresOn,
        _ scratch: inout MatchScratch
    ) {
        scratch.ids.reserve(count)
        let bit = UInt32(operation.rawValue) << PostingWord.firesShift
        let out = scratch.ids.base
        var end = scratch.ids.count
        for index in 0..<count {
            let word = words[index]
            out[end] = word & PostingWord.idMask
            end += word & bit == 0 ? 0 : 1
        }
        scratch.ids.count = end
    }

    /// Adds the subscriptions that a posting's first word refers to.
    @inline(__always)
    func emit(_ word: UInt32, _ operation: FiresOn, _ scratch: inout MatchScratch) {
        if word & PostingWord.group != 0 {
            let block = PostingBlock(store.arena, word & ~PostingWord.group)
            plain(block.postings, block.count, operation, &scratch)
        } else if word & UInt32(operation.rawValue) << PostingWord.firesShift != 0 {
            scratch.ids.append(word & PostingWord.idMask)
        }
    }

    // MARK: Intervals

    /// Returns a field's value in the form that a block's intervals need: the value to compare with
    /// lower bounds, and the value to compare with upper bounds.
    ///
    /// They differ for integers that a double cannot represent.
    @inline(__always)
    private func values(_ kind: IntervalKind, _ change: DecodedChange) -> (Int64, Int64)? {
        let slot = change.slots[kind.path]
        guard slot.kind == kind.valueClass else {
            return slot.form.contains(.bag) ? ends(of: slot, kind, change) : nil
        }
        let above = slot.tail == 0 ? slot.order : slot.order + 1
        return kind.isMirrored ? (~above, ~slot.order) : (slot.order, above)
    }

    /// Returns these values for a bag, in which any value may satisfy the lower bound and any the
    /// upper.
    @inline(never)
    private func ends(
        of slot: FieldSlot, _ kind: IntervalKind, _ change: DecodedChange
    ) -> (Int64, Int64)? {
        var (least, greatest) = (Int64.max, Int64.min)
        for index in 0..<Int(slot.length) {
            let element = change.encoder.elements[Int(slot.offset) + index]
            guard element.kind == kind.valueClass else { continue }
            least = min(least, element.tail == 0 ? element.order : element.order + 1)
            greatest = max(greatest, element.order)
        }
        if greatest == .min { return nil }
        return kind.isMirrored ? (~least, ~greatest) : (greatest, least)
    }

    @inline(__always)
    private func range(
        _ block: PostingBlock, _ change: DecodedChange, _ scratch: inout MatchScratch
    ) {
        guard let (value, above) = values(IntervalKind(block.interval), change) else { return }
        intervals(block.postings, block.count, value, above, change, &scratch)
    }

    @inline(__always)
    private func intervals(
        _ words: UnsafePointer<UInt32>, _ count: Int, _ value: Int64, _ above: Int64,
        _ change: DecodedChange, _ scratch: inout MatchScratch
    ) {
        scratch.candidates += UInt64(count)
        scratch.ids.reserve(count)
        let bit = UInt32(change.operation.rawValue) << PostingWord.firesShift
        let before = scratch.ids.count
        var end = before
        var posting = words
        for _ in 0..<count {
            let low = RangePosting.load(posting + 2)
            let high = RangePosting.load(posting + 4)
            let word = posting[0]
            let holds = (low <= value) && (above <= high)
            if posting[1] == 0, word & PostingWord.group == 0 {
                scratch.ids.base[end] = word & PostingWord.idMask
                end += holds && word & bit != 0 ? 1 : 0
            } else if holds {
                scratch.ids.count = end
                verify(word, posting[1], change, &scratch)
                scratch.ids.reserve(count)
                end = scratch.ids.count
            }
            posting += 6
        }
        scratch.ids.count = end
        scratch.confirmed += UInt64(end - before)
    }

    /// Adds intervals in a cell; those that begin too early to reach the value, or after it, are
    /// skipped.
    @inline(__always)
    private func sorted(
        _ block: PostingBlock, _ change: DecodedChange, _ scratch: inout MatchScratch
    ) {
        let kind = IntervalKind(block.interval)
        guard block.count > 0, let (value, above) = values(kind, change), let cells = kind.cells
        else { return }
        let words = block.postings
        var start = 0
        var end = block.count
        if RangePosting.load(words + (end - 1) * 6 + 2) <= value {
            let floor = cells.floor(value)
            while start < end, RangePosting.load(words + (end - 1) * 6 + 2) >= floor { end -= 1 }
            (start, end) = (end, block.count)
        } else {
            end = 0
            while RangePosting.load(words + end * 6 + 2) <= value { end += 1 }
        }
        intervals(words + start * 6, end - start, value, above, change, &scratch)
    }

    private func directory(
        _ block: PostingBlock, _ change: DecodedChange, _ scratch: inout MatchScratch
    ) {
        let kind = IntervalKind(block.interval)
        guard let (value, above) = values(kind, change) else { return }
        let floor = kind.cells?.floor(value) ?? .min
        var index = PostingStore.reach(value, block) - 1
        while index >= 0 {
            let entry = RangePosting(block.postings + index * 6)
            if entry.high >= above, !isRuledOut(entry.program, change, &scratch) {
                let chunk = PostingBlock(store.arena, entry.word)
                intervals(chunk.postings, chunk.count, value, above, change, &scratch)
            }
            // The chunks before this one begin too early to reach the value.
            if entry.low < floor { return }
            index -= 1
        }
    }

    /// Returns whether all intervals of a chunk have the same program and that program does not
    /// fire.
    @inline(__always)
    private func isRuledOut(
        _ program: UInt32, _ change: DecodedChange, _ scratch: inout MatchScratch
    ) -> Bool {
        program > PostingStore.mixedPrograms && scratch.mayJudge == nil
            && verdict(program, change, &scratch) == .doesNotFire
    }

    // MARK: Programs

    private func guarded(
        _ block: PostingBlock, _ change: DecodedChange, _ scratch: inout MatchScratch
    ) {
        let words = block.postings
        scratch.candidates += UInt64(block.count)
        let before = scratch.ids.count
        for index in 0..<block.count {
            verify(words[index * 2], words[index * 2 + 1], change, &scratch)
        }
        scratch.confirmed += UInt64(scratch.ids.count - before)
    }

    private func verify(
        _ word: UInt32, _ program: UInt32, _ change: DecodedChange, _ scratch: inout MatchScratch
    ) {
        if word & PostingWord.group == 0,
            word & UInt32(change.operation.rawValue) << PostingWord.firesShift == 0
        {
            return
        }
        if program == 0 {
            emit(word, change.operation, &scratch)
            return
        }
        var asksLater = false
        if scratch.mayJudge != nil {
            asksLater = !scratch.asksFirst && isOfMany(word)
            if !asksLater, !mayJudge(word, change.operation, &scratch) { return }
        }
        let before = scratch.steps
        let verdict = verdict(program, change, &scratch)
        if asksLater, !mayCount(verdict, of: word, since: before, change.operation, &scratch) {
            return
        }
        if scratch.steps - before >= Self.dearSteps {
            scratch.dear.append(DearPosting(word: word, steps: scratch.steps - before))
        }
        switch verdict {
        case .fires: emit(word, change.operation, &scratch)
        case .doesNotFire: return
        case .error: count(word, change.operation, &scratch)
        }
    }

    /// Returns the verdict of a program; the same program often comes many times in a row.
    @inline(__always)
    private func verdict(
        _ program: UInt32, _ change: DecodedChange, _ scratch: inout MatchScratch
    ) -> Verdict {
        if program == scratch.lastProgram { return scratch.lastVerdict }
        // Beyond the limit the change is set aside, and its answer is discarded.
        if scratch.steps > scratch.mostSteps { return .doesNotFire }
        scratch.runs += 1
        let verdict = programs.run(program, on: change, steps: &scratch.steps)
        (scratch.lastProgram, scratch.lastVerdict) = (program, verdict)
        return verdict
    }

    /// Counts an evaluation error for all subscriptions that a posting refers to.
    private func count(_ word: UInt32, _ operation: FiresOn, _ scratch: inout MatchScratch) {
        let before = scratch.ids.count
        emit(word, operation, &scratch)
        for index in before..<scratch.ids.count {
            let id = scratch.ids[index]
            if scratch.errors[id] != nil || scratch.errors.count < Self.mostErrors {
                scratch.errors[id, default: 0] += 1
            }
        }
        scratch.ids.count = before
    }

    /// The number of steps from which an evaluation is recorded, in case the change takes too many.
    static var dearSteps: Int { 50_000 }

    /// The maximum number of subscriptions whose errors one reader counts until a writer takes them
    /// over.
    private static var mostErrors: Int { 10_000 }
}

extension PostingStore {
    /// Returns whether a block is the first block of a key.
    @inline(__always)
    func has(_ head: UInt32, _ probe: Probe, _ key: UnsafePointer<UInt8>) -> Bool {
        let block = PostingBlock(arena, head)
        guard block.dimension == probe.dimension, block.keyLength == Int(probe.length) else {
            return false
        }
        return KeyBytes.equal(block.key, key, block.keyLength)
    }
}

extension KeyBytes {
    /// Returns whether two byte sequences are equal; most are 8 to 40 bytes long.
    @inline(__always)
    static func equal(
        _ left: UnsafePointer<UInt8>, _ right: UnsafePointer<UInt8>, _ count: Int
    ) -> Bool {
        if count < 8 {
            for index in 0..<count where left[index] != right[index] { return false }
            return true
        }
        let (first, second) = (UnsafeRawPointer(left), UnsafeRawPointer(right))
        var offset = 0
        while offset + 8 <= count {
            let same =
                first.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                == second.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            if !same { return false }
            offset += 8
        }
        return first.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
            == second.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
    }
}
