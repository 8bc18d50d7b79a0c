import FoundationEssentials
import Platform
package import RelayModel

/// The clocks and the chance of a running relay; everything else gets them handed in.
package struct World: Sendable {
    /// The time of day.
    package var now: @Sendable () -> Timestamp
    /// Measures waits.
    package var clock: any Clock<Duration>
    /// Chance that cannot be foreseen.
    package var generator: any RandomNumberGenerator & Sendable
    /// What the machine is called, for people.
    package var machine: String
    /// Which Belfry it is, for people.
    package var version = "development"

    /// Collects clocks and chance.
    package init(
        now: @escaping @Sendable () -> Timestamp, clock: any Clock<Duration>,
        generator: any RandomNumberGenerator & Sendable, machine: String = "localhost"
    ) {
        self.now = now
        self.clock = clock
        self.generator = generator
        self.machine = machine
    }

    /// The real world.
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
