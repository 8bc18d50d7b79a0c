/// Comparisons whose time does not tell how much of a guess was right.
package enum ConstantTime {
    /// Whether both are the same bytes; only their lengths show.
    // Inlined elsewhere, because a call for each byte takes a hundred times as long.
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
