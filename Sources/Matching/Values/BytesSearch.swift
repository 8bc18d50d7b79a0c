#if canImport(Glibc)
    import Glibc
#endif

/// Searches bytes in bytes, in time proportional to the sum of both lengths for any input.
enum BytesSearch {
    /// The maximum number of bytes compared without success for each byte of the text.
    private static let patience = 8

    /// Returns whether `needle`, which has at least one byte, occurs in `text`.
    static func isFound(
        _ needle: UnsafePointer<UInt8>, _ length: Int, in text: UnsafePointer<UInt8>, _ count: Int
    ) -> Bool {
        var place = text
        var left = count - length + 1
        var compared = 0
        while left > 0 {
            guard let found = memchr(place, Int32(needle[0]), left) else { return false }
            let start = UnsafePointer(found.assumingMemoryBound(to: UInt8.self))
            if memcmp(start, needle, length) == 0 { return true }
            left -= start - place + 1
            place = start + 1
            compared += length
            // Only a hostile text nearly matches everywhere; the search changes to a linear
            // algorithm for it.
            if compared > patience * count {
                return isFoundByBorders(needle, length, in: place, left + length - 1)
            }
        }
        return false
    }

    /// Searches by the algorithm of Knuth, Morris and Pratt, which reads no byte of the text twice.
    private static func isFoundByBorders(
        _ needle: UnsafePointer<UInt8>, _ length: Int, in text: UnsafePointer<UInt8>, _ count: Int
    ) -> Bool {
        var borders = [Int](repeating: 0, count: length)
        var matched = 0
        for index in 1..<max(length, 1) {
            while matched > 0, needle[matched] != needle[index] { matched = borders[matched - 1] }
            if needle[matched] == needle[index] { matched += 1 }
            borders[index] = matched
        }
        matched = 0
        for index in 0..<max(count, 0) {
            while matched > 0, needle[matched] != text[index] { matched = borders[matched - 1] }
            if needle[matched] == text[index] { matched += 1 }
            if matched == length { return true }
        }
        return false
    }
}
