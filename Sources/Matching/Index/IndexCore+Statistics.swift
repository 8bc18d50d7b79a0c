extension IndexCore {
    /// Adds the number of keys of each dimension to `counts`.
    func countKeys(into counts: inout [Int]) {
        let table = store.table
        for index in 0...table.mask where table.slots[index] != 0 {
            let block = PostingBlock(store.arena, KeyTable.block(of: table.slots[index]))
            let dimension = Int(block.dimension)
            if dimension < counts.count { counts[dimension] += 1 }
        }
    }
}
