import RelayModel
import RelayTestKit
import Testing

@testable import Live

/// The limit of what one change may write for the queries of one user.
@Suite struct FrameWeightTests {
    private static let told = LiveGroupFrame(1, LiveFrame(["type": "items"]))
    private static let alice: UserID = Fixtures.identifier("alice")
    private static let bob: UserID = Fixtures.identifier("bob")

    @Test func `a user with many bytes written of a change has no room, and others have`() {
        var weight = FrameWeight()
        let most = Self.told.bytes
        weight.add(Self.told, for: Self.alice)
        let hasAliceAtFirst = weight.hasRoom(for: Self.alice, most: most)
        weight.add(Self.told, for: Self.bob)
        weight.add(Self.told, for: Self.alice)
        let hasAlice = weight.hasRoom(for: Self.alice, most: most)
        let hasBob = weight.hasRoom(for: Self.bob, most: most)
        weight.add(Self.told, for: Self.bob)
        let hasBobAtLast = weight.hasRoom(for: Self.bob, most: most)
        #expect(hasAliceAtFirst && !hasAlice)
        #expect(hasBob && !hasBobAtLast)
    }

    @Test func `the next change has room for all users again`() {
        var weight = FrameWeight()
        for _ in 0..<3 { weight.add(Self.told, for: Self.alice) }
        let hasRoom = weight.hasRoom(for: Self.alice, most: 1)
        weight.finishChange()
        let hasRoomAfter = weight.hasRoom(for: Self.alice, most: 1)
        #expect(!hasRoom && hasRoomAfter)
    }

    @Test func `the frames of a large request are sent in pieces`() {
        var weight = FrameWeight()
        var count = 0
        while !weight.isOverfull, count < 1_000_000 {
            weight.add(Self.told, for: Self.alice)
            weight.finishChange()
            count += 1
        }
        // The overhead of a frame is greater than this short text.
        #expect((100_000..<500_000).contains(count) && weight.isFull)
        weight.send()
        #expect(!weight.isFull && !weight.isOverfull)
        while !weight.isOverfull, count < 1_000_000 {
            weight.addNote()
            count += 1
        }
        #expect(weight.isOverfull)
    }

    @Test func `a frame weighs as much as its forms together`() {
        var told = Self.told
        told.entered = LiveFrame(["type": "entered"])
        told.left = LiveFrame(["type": "left"])
        let forms = [told.whole, told.entered, told.left]
        #expect(told.bytes == forms.reduce(0) { $0 + ($1?.bytes.count ?? 0) })
        #expect(LiveGroupFrame(1, nil).bytes == 0)
    }
}
