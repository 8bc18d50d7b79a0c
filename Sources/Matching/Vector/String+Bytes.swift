#if canImport(Glibc)
    import Glibc
#endif

extension String {
    /// Whether another text has the same bytes; `==` holds two spellings of "é" equal.
    @inline(__always)
    func isSame(as other: String) -> Bool {
        if utf8.count != other.utf8.count { return false }
        let isSame = utf8.withContiguousStorageIfAvailable { left in
            other.utf8.withContiguousStorageIfAvailable { right in
                guard let first = left.baseAddress, let second = right.baseAddress else {
                    return true
                }
                return memcmp(first, second, left.count) == 0
            }
        }
        return (isSame ?? nil) ?? utf8.elementsEqual(other.utf8)
    }
}
