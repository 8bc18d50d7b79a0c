import FoundationEssentials
import Platform
package import RelayModel

/// The clocks and the source of randomness of a running relay.
///
/// Everything else receives them through its initialiser.
package struct World: Sendable {
    /// The time of day.
    package var now: @Sendable () -> Timestamp
    /// The clock that measures waits.
    package var clock: any Clock<Duration>
    /// A generator of unpredictable random numbers.
    package var generator: any RandomNumberGenerator & Sendable
    /// The name of the machine, for display.
    package var machine: String
    /// The version of Belfry, for display.
    package var version = "development"

    /// Creates a world from its clocks and its source of randomness.
    package init(
        now: @escaping @Sendable () -> Timestamp, clock: any Clock<Duration>,
        generator: any RandomNumberGenerator & Sendable, machine: String = "localhost"
    ) {
        self.now = now
        self.clock = clock
        self.generator = generator
        self.machine = machine
    }

    /// The real clocks and the system's source of randomness.
    package static let real = World(
        now: {
            let (seconds, nanoseconds) = timeOfDay()
            return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
        }, clock: ContinuousClock(), generator: SystemRandomNumberGenerator(),
        machine: ProcessInfo.processInfo.hostName)

    /// Returns `count` unpredictable bytes.
    package func randomBytes(_ count: Int) -> [UInt8] {
        var generator = generator
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        // Each word may be a system call.
        while bytes.count < count {
            let word: UInt64 = generator.next()
            for shift in stride(from: 0, to: 64, by: 8) where bytes.count < count {
                bytes.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        return bytes
    }
}
