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
