import RelayModel

extension IndexCore {
    /// Returns whether any of the subscriptions that a posting refers to may be judged.
    @inline(never)
    func mayJudge(
        _ word: UInt32, _ operation: FiresOn, _ scratch: inout MatchScratch
    ) -> Bool {
        guard let mayJudge = scratch.mayJudge else { return true }
        let before = scratch.ids.count
        defer { scratch.ids.count = before }
        emit(word, operation, &scratch)
        for index in before..<scratch.ids.count
        where mayJudge(scratch.base | UInt64(scratch.ids[index])) {
            return true
        }
        return false
    }

    /// Returns whether so many users share a condition that asking about them may take longer than
    /// evaluating it.
    func isOfMany(_ word: UInt32) -> Bool {
        guard word & PostingWord.group != 0 else { return false }
        return PostingBlock(store.arena, word & ~PostingWord.group).count > Self.fewAsked
    }

    /// Returns whether the verdict of a condition of many users counts, which was found before they
    /// were asked about.
    ///
    /// They are not asked about at all if the evaluation took little: asking about a million users
    /// takes a tenth of a second. After an evaluation that took long for nobody who may know, users
    /// are asked about first, so that such conditions cannot take the time of a change.
    @inline(never)
    func mayCount(
        _ verdict: Verdict, of word: UInt32, since before: Int, _ operation: FiresOn,
        _ scratch: inout MatchScratch
    ) -> Bool {
        let steps = scratch.steps - before
        scratch.unaskedSteps += steps
        if scratch.unaskedSteps > Self.mostUnasked { scratch.asksFirst = true }
        guard steps >= Self.dearSteps || verdict == .error else { return true }
        if mayJudge(word, operation, &scratch) { return true }
        scratch.steps = before
        if steps >= Self.dearSteps { scratch.asksFirst = true }
        return false
    }

    /// The maximum number of users of a condition who are asked about before it is evaluated.
    private static var fewAsked: Int { 16 }

    /// The number of steps, two milliseconds, that conditions of others may take of a change.
    private static var mostUnasked: Int { 1_000_000 }

    /// Returns the steps of expensive conditions, by subscription.
    func costs(_ scratch: inout MatchScratch, _ operation: FiresOn) -> [(id: UInt32, steps: Int)] {
        var costs: [(id: UInt32, steps: Int)] = []
        for posting in scratch.dear {
            guard costs.count < Self.mostCosts else { break }
            scratch.ids.count = 0
            emit(posting.word, operation, &scratch)
            let steps = posting.steps / max(scratch.ids.count, 1)
            for index in 0..<min(scratch.ids.count, Self.mostCosts - costs.count) {
                let id = scratch.ids[index]
                // A user who may not read the record must not learn from a blame what it says.
                guard scratch.mayJudge?(scratch.base | UInt64(id)) ?? true else { continue }
                costs.append((id, steps))
            }
        }
        return costs
    }

    /// The maximum number of subscriptions whose costs are reported for one change.
    private static var mostCosts: Int { 10_000 }
}
