/// Comparisons whose duration does not reveal how much of a guess is right.
package enum ConstantTime {
    /// Returns whether both collections have the same bytes; only their lengths affect the
    /// duration.
    // Inlinable, because a call for each byte takes a hundred times as long.
    @inlinable
    package static func equal(
        _ left: some Collection<UInt8>, _ right: some Collection<UInt8>
    ) -> Bool {
        guard left.count == right.count else { return false }
        var difference: UInt8 = 0
        for (a, b) in zip(left, right) { difference |= a ^ b }
        return difference == 0
    }
}
