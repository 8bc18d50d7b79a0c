/// Sorts the numbers that a match collected: a few ascending runs, as a rule.
enum MatchOrder {
    /// Sorts ascending; repetitions stay.
    static func sort(_ scratch: inout MatchScratch) {
        let count = scratch.ids.count
        let ids = scratch.ids.base
        var index = 1
        while index < count, ids[index - 1] <= ids[index] { index += 1 }
        if index >= count { return }
        if count <= 24 {
            insertionSort(ids, from: index, count)
        } else {
            mergeOrRadix(&scratch)
        }
    }

    private static func insertionSort(
        _ ids: UnsafeMutablePointer<UInt32>, from start: Int, _ count: Int
    ) {
        for index in start..<count {
            let id = ids[index]
            var place = index
            while place > 0, ids[place - 1] > id {
                ids[place] = ids[place - 1]
                place -= 1
            }
            ids[place] = id
        }
    }

    private static func mergeOrRadix(_ scratch: inout MatchScratch) {
        let count = scratch.ids.count
        var runs = 1
        var union: UInt32 = 0
        for index in 1..<count {
            runs += scratch.ids[index] < scratch.ids[index - 1] ? 1 : 0
            union |= scratch.ids[index] ^ scratch.ids[0]
        }
        scratch.spare.count = 0
        scratch.spare.reserve(count)
        // Two runs are merged in one pass; more are worth the passes of a radix sort.
        if runs == 2 {
            merge(&scratch, count)
        } else {
            radixSort(&scratch, count, differing: union)
        }
    }

    private static func merge(_ scratch: inout MatchScratch, _ count: Int) {
        let ids = scratch.ids.base
        let out = scratch.spare.base
        var middle = 1
        while ids[middle - 1] <= ids[middle] { middle += 1 }
        var left = 0
        var right = middle
        var end = 0
        while left < middle, right < count {
            let takesLeft = ids[left] <= ids[right]
            out[end] = takesLeft ? ids[left] : ids[right]
            left += takesLeft ? 1 : 0
            right += takesLeft ? 0 : 1
            end += 1
        }
        while left < middle {
            out[end] = ids[left]
            left += 1
            end += 1
        }
        ids.update(from: out, count: end)
    }

    /// Sorts by bytes, least significant first, leaving out those in which all numbers agree.
    private static func radixSort(
        _ scratch: inout MatchScratch, _ count: Int, differing: UInt32
    ) {
        var source = scratch.ids.base
        var target = scratch.spare.base
        var counts = InlineArray<128, UInt32>(repeating: 0)
        var isSwapped = false
        for shift in stride(from: UInt32(0), to: 28, by: 7) where differing >> shift & 127 != 0 {
            for digit in 0..<128 { counts[digit] = 0 }
            for index in 0..<count { counts[Int(source[index] >> shift & 127)] &+= 1 }
            var sum: UInt32 = 0
            for digit in 0..<128 {
                let inDigit = counts[digit]
                counts[digit] = sum
                sum &+= inDigit
            }
            for index in 0..<count {
                let digit = Int(source[index] >> shift & 127)
                target[Int(counts[digit])] = source[index]
                counts[digit] &+= 1
            }
            swap(&source, &target)
            isSwapped.toggle()
        }
        if isSwapped { scratch.ids.base.update(from: source, count: count) }
    }
}
