import Matching
import PredicateLanguage
import RelayModel
import Testing

@Suite struct ImageTests {
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `an index made from an image answers and learns like the original`(seed: UInt64) throws {
        var world = RandomWorld(seed: seed)
        let index = SubscriptionIndex(seed: seed &* 13)
        for serial in 0..<500 as Range<UInt64> { index.insert(world.subscription(serial)) }
        for serial in stride(from: 0, to: 500, by: 7) as StrideTo<UInt64> {
            index.remove(serial: serial)
        }
        index.insert(world.subscription(1 << 40))
        let copy = try SubscriptionIndex(image: try index.image())
        var (kept, made) = (index.statistics, copy.statistics)
        // The spare capacity of arrays may differ.
        (kept.bytes, made.bytes) = (0, 0)
        #expect(kept == made)
        #expect(copy.paths == index.paths)
        for _ in 0..<300 {
            let change = try world.change()
            #expect(copy.matches(for: change) == index.matches(for: change))
            let subscription = world.subscription(UInt64(world.generator.below(700)))
            #expect(copy.insert(subscription).keys == index.insert(subscription).keys)
            let gone = UInt64(world.generator.below(700))
            #expect(copy.remove(serial: gone) == index.remove(serial: gone))
        }
        for serial in (0..<700).map(UInt64.init) + [1 << 40] { copy.remove(serial: serial) }
        #expect(copy.statistics.keys == 0)
        #expect(copy.statistics.programs == 0)
    }

    @Test func `an image that is cut off or of another version is refused`() throws {
        var world = RandomWorld(seed: 3)
        let index = SubscriptionIndex(seed: 1)
        for serial in 0..<50 as Range<UInt64> { index.insert(world.subscription(serial)) }
        let image = try index.image()
        for count in stride(from: 0, to: image.count, by: max(1, image.count / 97)) {
            #expect(throws: (any Error).self) {
                _ = try SubscriptionIndex(image: Array(image.prefix(count)))
            }
        }
        var other = image
        other[0] ^= 0xFF
        #expect(throws: ImageDamage("the index is of another version")) {
            _ = try SubscriptionIndex(image: other)
        }
        #expect(throws: ImageDamage("there are bytes after the index")) {
            _ = try SubscriptionIndex(image: image + [0])
        }
    }

    /// An older version may have filed conditions wrongly or without keys, and its image would
    /// keep that.
    @Test func `an image of the previous version is refused`() throws {
        let index = SubscriptionIndex(seed: 1)
        var before = try index.image()
        #expect(before.prefix(4) == [8, 0, 0, 0])
        before[0] = 7
        #expect(throws: ImageDamage("the index is of another version")) {
            _ = try SubscriptionIndex(image: before)
        }
    }

    /// Detects changes to the layout of images.
    ///
    /// A change to planning, hashing or layout must raise ``SubscriptionIndex/imageVersion``;
    /// otherwise old snapshots would be misread. Then update the expected figures here.
    @Test func `the bytes of an image have not changed their meaning`() throws {
        var world = RandomWorld(seed: 11)
        let index = SubscriptionIndex(seed: 11)
        for serial in 0..<300 as Range<UInt64> { index.insert(world.subscription(serial)) }
        let statistics = index.statistics
        #expect(
            [
                UInt64(SubscriptionIndex.imageVersion), UInt64(statistics.keys),
                UInt64(statistics.plainPostings), UInt64(statistics.rangePostings),
                UInt64(statistics.guardedPostings), UInt64(statistics.programs),
            ] == [8, 194, 117, 14, 201, 169])
    }
}
