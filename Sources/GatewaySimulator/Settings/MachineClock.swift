#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The machine's clock, which the simulator reads only here.
enum MachineClock {
    /// Returns the current time.
    @Sendable static func now() -> Date { Date() }
}
