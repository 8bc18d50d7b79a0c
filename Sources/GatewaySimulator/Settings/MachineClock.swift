#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The machine's clock, which the simulator reads here and nowhere else.
enum MachineClock {
    /// The time of day.
    @Sendable static func now() -> Date { Date() }
}
