/// Sorts the numbers that a match collected, which are usually a few ascending runs.
enum MatchOrder {
    /// Sorts the numbers in ascending order; repetitions stay.
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
        let ids = scratch.ids.base
        var runs = 1
        var least = ids[0]
        var most = ids[0]
        for index in 1..<count {
            runs += ids[index] < ids[index - 1] ? 1 : 0
            least = min(least, ids[index])
            most = max(most, ids[index])
        }
        scratch.spare.count = 0
        scratch.spare.reserve(count)
        // Two runs are merged in one pass.
        if runs == 2 {
            merge(&scratch, count)
        } else if !spread(&scratch, count, least: least, most: most) {
            let width = UInt32(UInt32.bitWidth - (most ^ least).leadingZeroBitCount)
            radixSort(&scratch, count, differing: 1 << width &- 1)
        }
    }

    /// Sorts evenly spread numbers: one pass puts each into its part of the range, and an insertion
    /// sort does the rest.
    ///
    /// - Returns: Whether it sorted; it does not if many numbers fall into one part.
    private static func spread(
        _ scratch: inout MatchScratch, _ count: Int, least: UInt32, most: UInt32
    ) -> Bool {
        let parts = 256
        let width = UInt32.bitWidth - (most - least).leadingZeroBitCount
        let shift = UInt32(max(width - 8, 0))
        if count > parts * 8 { return false }
        let ids = scratch.ids.base
        let out = scratch.spare.base
        var starts = InlineArray<257, UInt16>(repeating: 0)
        for index in 0..<count { starts[Int((ids[index] - least) >> shift) + 1] &+= 1 }
        var sum: UInt16 = 0
        var largest: UInt16 = 0
        for part in 1...parts {
            largest = max(largest, starts[part])
            sum &+= starts[part]
            starts[part] = sum
        }
        if largest > 16 { return false }
        for index in 0..<count {
            let part = Int((ids[index] - least) >> shift)
            out[Int(starts[part])] = ids[index]
            starts[part] &+= 1
        }
        ids.update(from: out, count: count)
        insertionSort(ids, from: 1, count)
        return true
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

    /// Sorts by groups of seven bits, the least significant first; groups in which all numbers
    /// agree are skipped.
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

    /// Appends the sorted numbers as serials, without repetitions.
    @inline(__always)
    static func append(
        _ base: UInt64, _ scratch: inout MatchScratch, to serials: inout [UInt64]
    ) {
        let count = scratch.ids.count
        if count == 0 { return }
        let ids = scratch.ids.base
        scratch.answer.count = 0
        scratch.answer.reserve(count)
        let answer = scratch.answer.base
        var end = 0
        var last = UInt32.max
        for index in 0..<count {
            let id = ids[index]
            answer[end] = base | UInt64(id)
            end += id != last ? 1 : 0
            last = id
        }
        serials.append(contentsOf: UnsafeBufferPointer(start: answer, count: end))
    }
}
