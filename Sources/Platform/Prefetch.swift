public import CPlatform

/// Asks the processor to load memory that will be read or changed soon, without waiting for it.
///
/// Each first access to memory that is in no cache takes some 100 ns. Accesses that are requested
/// beforehand are loaded at the same time. The address may be any; a prefetch has no other effect.
///
/// - Parameters:
///   - place: The start of the memory.
///   - lines: The number of cache lines of 64 bytes.
@inlinable
package func prefetch(_ place: UnsafeRawPointer, lines: Int) {
    for line in 0..<lines { unsafe belfry_prefetch(place + 64 * line) }
}
