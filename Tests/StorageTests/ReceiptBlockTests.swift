import RelayModel
import RelayTestKit
import Testing

@testable import Storage

@Suite struct ReceiptBlockTests {
    @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
    func `a block decodes to what was encoded`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let receipts = (0..<500).map { _ in Self.receipt(&generator) }
        let block = try #require(ReceiptBlock(receipts))
        #expect(ReceiptBlock.decode(block.body) == receipts)
        for wanted in receipts.prefix(5) {
            let own = ReceiptBlock.decode(block.body, of: wanted.deliveryID)
            #expect(own == receipts.filter { $0.deliveryID == wanted.deliveryID })
            let serial = wanted.subscriptionSerial
            let ofSubscription = ReceiptBlock.decode(
                block.body, where: { _, subscription, _ in subscription == serial.stored })
            #expect(ofSubscription == receipts.filter { $0.subscriptionSerial == serial })
        }
        #expect(block.count == 500)
        #expect(receipts.allSatisfy { block.positions.contains($0.ordinal.position) })
        #expect(block.lastAt == receipts.map(\.at).max())
    }

    @Test func `accepted deliveries of one change take thirty bytes each`() throws {
        let receipts = (0..<300).map { number in
            DeliveryReceipt(
                deliveryID: Sample.deliveryID(number),
                ordinal: DeliveryOrdinal(
                    position: LogPosition(1_000_000), offset: UInt32(number)),
                subscriptionSerial: 500_000 + number * 3, deviceSerial: 900_000 + number * 7,
                outcome: .accepted, status: 200, reason: "", attempt: 1,
                at: Sample.moment(0).advanced(by: .microseconds(Int64(number) * 40)))
        }
        let block = try #require(ReceiptBlock(receipts))
        #expect(block.body.count <= 30 * receipts.count)
    }

    @Test func `no receipts make no block`() {
        #expect(ReceiptBlock([]) == nil)
    }

    @Test func `a damaged block is refused`() throws {
        let block = try #require(ReceiptBlock([Sample.receipt(1, .deferred, reason: "Busy")]))
        #expect(ReceiptBlock.decode([]) == nil)
        for length in 0..<block.body.count {
            #expect(ReceiptBlock.decode(block.body.prefix(length)) == nil)
        }
        #expect(ReceiptBlock.decode(block.body + [0]) == nil)
        #expect(ReceiptBlock.decode([2] + block.body.dropFirst()) == nil)
        #expect(ReceiptBlock.decode([1] + Array(repeating: 0xFF, count: 40)) == nil)
    }

    private static func receipt(_ generator: inout SeededGenerator) -> DeliveryReceipt {
        let outcomes = DeliveryReceipt.Outcome.allCases
        return DeliveryReceipt(
            deliveryID: DeliveryID(
                UUIDBytes(high: generator.next(), low: generator.next())),
            ordinal: DeliveryOrdinal(
                position: LogPosition(.random(in: 0..<(1 << 62), using: &generator)),
                offset: .random(in: 0...UInt32.max, using: &generator)),
            subscriptionSerial: .random(in: 0..<(1 << 62), using: &generator),
            deviceSerial: .random(in: 0..<(1 << 62), using: &generator),
            outcome: outcomes[Int.random(in: 0..<4, using: &generator)],
            status: .random(in: 0...UInt16.max, using: &generator),
            reason: ["", "Grüße", "TooManyRequests"][Int.random(in: 0..<3, using: &generator)],
            attempt: .random(in: 0...UInt16.max, using: &generator),
            at: Timestamp(
                seconds: .random(in: -1_000_000...4_000_000_000, using: &generator),
                nanoseconds: .random(in: 0..<1_000_000_000, using: &generator)))
    }
}
