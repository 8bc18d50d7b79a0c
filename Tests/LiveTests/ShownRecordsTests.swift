import RelayModel
import Testing

@testable import Live

/// What is kept of the frames of a result, for whoever is sent the same a little later.
@Suite struct ShownRecordsTests {
    private static func frame(kilobytes: Int) -> LiveFrame {
        LiveFrame(["text": .string(String(repeating: "x", count: kilobytes * 1024))])
    }

    @Test func `frames are kept as long as there is room, which comes back with the result`() {
        let room = PartsRoom(megabytes: 1)
        var results = [ShownRecords([]), ShownRecords([])]
        var made = 0
        func take(_ number: Int, of result: ShownRecords) {
            let place = LiveResult.Place(number: number, index: number)
            _ = result.part(at: place, in: room) {
                made += 1
                return (Self.frame(kilobytes: 400), nil)
            }
        }
        for number in [0, 0, 1, 1] { take(number, of: results[0]) }
        #expect(made == 2)
        // There is none for a third: it is made for each who takes it.
        for _ in 0..<2 { take(0, of: results[1]) }
        #expect(made == 4)
        #expect((800 * 1024...1024 * 1024).contains(room.bytes))
        results.removeFirst()
        #expect(room.bytes == 0)
        for _ in 0..<2 { take(0, of: results[0]) }
        #expect(made == 5)
        results = []
        #expect(room.bytes == 0)
    }
}
