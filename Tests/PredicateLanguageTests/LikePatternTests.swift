import Testing

@testable import PredicateLanguage

/// Patterns of LIKE of any length match correctly, and take memory in proportion to their length.
@Suite struct LikePatternTests {
    private static let star: UInt32 = 0x2A
    private static let one: UInt32 = 0x3F

    /// Returns whether a text fits, by following all positions in the pattern at once.
    private static func fits(_ pattern: [UInt32], _ text: [UInt32]) -> Bool {
        var reached = [true] + [Bool](repeating: false, count: pattern.count)
        func pass() {
            for index in pattern.indices where reached[index] && pattern[index] == star {
                reached[index + 1] = true
            }
        }
        pass()
        for unit in text {
            var next = [Bool](repeating: false, count: pattern.count + 1)
            for index in pattern.indices where reached[index] {
                if pattern[index] == star {
                    next[index] = true
                } else if pattern[index] == one || pattern[index] == unit {
                    next[index + 1] = true
                }
            }
            reached = next
            pass()
        }
        return reached[pattern.count]
    }

    /// A generator of pseudorandom numbers.
    private struct Numbers {
        var state: UInt64

        mutating func below(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
    }

    @Test(arguments: [1, 2, 6, 40, 400])
    func `patterns of any length match correctly`(letters: Int) {
        var numbers = Numbers(state: UInt64(letters))
        var fitting = 0
        for round in 0..<400 {
            func letter() -> UInt32 { UInt32(0x61 + numbers.below(letters)) }
            var (pattern, text): ([UInt32], [UInt32]) = ([], [])
            for _ in 0..<numbers.below(round < 200 ? 70 : 260) {
                switch numbers.below(12) {
                case 0:
                    pattern.append(Self.star)
                    for _ in 0..<numbers.below(4) { text.append(letter()) }
                case 1:
                    pattern.append(Self.one)
                    text.append(letter())
                default:
                    let unit = letter()
                    pattern.append(unit)
                    text.append(unit)
                }
            }
            if round % 3 == 0, !text.isEmpty { text[numbers.below(text.count)] = letter() }
            if round % 7 == 0 { text.append(letter()) }
            let expected = Self.fits(pattern, text)
            if expected { fitting += 1 }
            #expect(LikePattern(pattern).matches(text) == expected, "\(pattern) \(text)")
        }
        #expect(fitting > 100)
    }

    @Test func `the memory of a pattern depends on its length alone`() {
        for length in [10, 63, 64, 1000, 60_000] {
            let different = (0..<length).map { UInt32(0x100 + $0) }
            let some = (0..<length).map { UInt32(0x100 + $0 % 300) }
            let same = [UInt32](repeating: 0x61, count: length)
            for pattern in [different, some, same] {
                #expect(LikePattern(pattern).room <= 512 + 64 * length, "\(length)")
            }
        }
    }

    @Test func `a long pattern of different characters matches`() {
        let units = (0..<3000).map { UInt32(0x100 + $0) }
        let pattern = LikePattern(units)
        #expect(pattern.matches(units))
        #expect(!pattern.matches(units.dropLast()))
        #expect(!pattern.matches(units.reversed()))
        #expect(LikePattern([Self.star] + units + [Self.star]).matches([7, 8] + units + [9]))
    }
}
