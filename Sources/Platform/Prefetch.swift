public import CPlatform

/// Asks the processor for memory that will be read or changed soon, and goes on.
///
/// Of memory that no cache holds each first look is waited for by itself, some 100 ns; what is
/// asked for beforehand comes together. Whatever the address is, nothing else happens.
///
/// - Parameters:
///   - place: where it begins.
///   - lines: how much of it, in lines of 64 bytes.
@inlinable
package func prefetch(_ place: UnsafeRawPointer, lines: Int) {
    for line in 0..<lines { unsafe belfry_prefetch(place + 64 * line) }
}
