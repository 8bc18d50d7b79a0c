import Foundation

/// A generator whose sequence follows from its seed: SplitMix64 (Steele, Lea, Flood 2014).
package struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates the sequence of `seed`.
    package init(seed: UInt64) {
        state = seed
    }

    /// Returns the next number.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns true with a probability of `percent` in a hundred.
    package mutating func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &self) < percent
    }
}

/// The seeds of random tests: a fixed few, and one that CI derives from the commit.
package enum Seeds {
    /// The seeds; a random test runs once for each of them.
    ///
    /// A failure names its seed. The environment variable `BELFRY_SEED` adds one, in decimal or as
    /// hexadecimal digits of a commit, or several with commas between them.
    package static let all: [UInt64] = {
        var seeds: [UInt64] = [1, 2, 3, 5, 8]
        let more = ProcessInfo.processInfo.environment["BELFRY_SEED"] ?? ""
        for text in more.split(separator: ",") {
            if let seed = UInt64(text) ?? UInt64(text.prefix(16), radix: 16) { seeds.append(seed) }
        }
        return seeds
    }()
}
