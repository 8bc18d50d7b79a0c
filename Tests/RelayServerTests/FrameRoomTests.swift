import RelayModel
import RelayTestKit
import Testing

@testable import RelayServer

/// All sockets together have one bound for the frames that they hold.
@Suite struct FrameRoomTests {
    private static let megabyte = 1024 * 1024
    private static let other = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.other"), environment: .production)

    /// Lets each of many sockets hold `bytes`, and returns how many of them could.
    private static func fill(
        _ room: FrameRoom, _ parts: inout [FrameRoom.Part], _ bytes: Int,
        of container: ContainerKey?
    ) -> Int {
        var count = 0
        for index in parts.indices where room.set(&parts[index], to: bytes, of: container) {
            count += 1
        }
        return count
    }

    @Test func `one container gets half, and short frames get a reserve`() {
        let room = FrameRoom(megabytes: 16)
        var own = (0..<20).map { _ in FrameRoom.Part() }
        var others = (0..<20).map { _ in FrameRoom.Part() }
        var short = (0..<8).map { _ in FrameRoom.Part() }
        let long = Self.megabyte
        // An eighth of each container's half is reserved for short frames.
        let taken = [
            Self.fill(room, &own, long, of: Fixtures.container),
            Self.fill(room, &others, long, of: Self.other),
            Self.fill(room, &short, 64 * 1024, of: Self.other),
        ]
        #expect(taken == [7, 7, 8])
        let given = [
            Self.fill(room, &own, 0, of: Fixtures.container),
            Self.fill(room, &others, 0, of: nil),
            Self.fill(room, &short, 100, of: Self.other),
        ]
        #expect(given == [20, 20, 8] && room.bytes == 0)
    }

    @Test func `a growing frame takes more room, and a refused one holds nothing`() {
        let room = FrameRoom(megabytes: 8)
        var part = FrameRoom.Part()
        let isLittle = room.set(&part, to: FrameRoom.free, of: Fixtures.container)
        #expect(isLittle && room.bytes == 0)
        let isMore = room.set(&part, to: Self.megabyte, of: Fixtures.container)
        #expect(isMore && room.bytes == Self.megabyte - FrameRoom.free)
        let isLess = room.set(&part, to: 10_000, of: Fixtures.container)
        #expect(isLess && room.bytes == 10_000 - FrameRoom.free)
        let isTooMuch = room.set(&part, to: 5 * Self.megabyte, of: Fixtures.container)
        #expect(!isTooMuch && room.bytes == 0)
        _ = room.set(&part, to: 0, of: nil)
        #expect(room.bytes == 0)
    }

    @Test func `strangers share half, and known clients get the rest`() {
        let room = FrameRoom(megabytes: 16)
        var strange = (0..<20).map { _ in FrameRoom.Part() }
        var short = (0..<40).map { _ in FrameRoom.Part() }
        var own = (0..<20).map { _ in FrameRoom.Part() }
        let taken = [
            Self.fill(room, &strange, Self.megabyte, of: nil),
            Self.fill(room, &short, 64 * 1024, of: nil),
            Self.fill(room, &own, Self.megabyte, of: Fixtures.container),
        ]
        // Short frames get the megabyte that long ones must leave, and what is not counted of each.
        #expect(taken[0] == 7 && (16...20).contains(taken[1]) && taken[2] == 6)
        _ = Self.fill(room, &strange, 0, of: nil)
        _ = Self.fill(room, &short, 0, of: nil)
        _ = Self.fill(room, &own, 0, of: nil)
        #expect(room.bytes == 0)
        let again = Self.fill(room, &strange, Self.megabyte, of: nil)
        #expect(again == 7)
    }

    @Test func `a stranger's room counts for the container once it is known`() {
        let room = FrameRoom(megabytes: 8)
        var part = FrameRoom.Part()
        var later = FrameRoom.Part()
        let isThere = room.set(&part, to: 3 * Self.megabyte, of: nil)
        let isKnown = room.set(&part, to: 3 * Self.megabyte, of: Fixtures.container)
        // Long frames of one container get three and a half megabytes.
        let isTooMuch = room.set(&later, to: Self.megabyte, of: Fixtures.container)
        let isAnother = room.set(&later, to: Self.megabyte, of: Self.other)
        #expect(isThere && isKnown && !isTooMuch && isAnother)
        _ = room.set(&part, to: 0, of: nil)
        _ = room.set(&later, to: 0, of: nil)
        #expect(room.bytes == 0)
    }
}
