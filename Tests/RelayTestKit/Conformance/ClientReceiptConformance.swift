import RelayModel
import Storage
import Testing

/// The contract of ``Storage/ClientReceiptRegistry``.
package enum ClientReceiptConformance {
    /// The cases that state it.
    package static let cases = [
        ConformanceCase("the first report of a client is kept, also after a restart", check: marks),
        ConformanceCase("a client's reports are visible to its user only", check: ownership),
        ConformanceCase("only the newest client receipts of a user are kept", check: surplus),
        ConformanceCase("client receipts are pruned together with receipts", check: pruning),
        ConformanceCase(
            "receipts and devices are found by the IDs that clients report", check: finding),
    ]

    private static let ann = InboxOwner(
        container: Sample.container, user: Sample.identifier("ann"))

    private static func mark(
        _ position: UInt64, _ kind: ClientMark.Kind, at seconds: Int64,
        device: String? = "phone", serial: UInt64? = nil
    ) -> ClientMark {
        ClientMark(
            position: LogPosition(position), device: device.map { Sample.identifier($0) },
            subscriptionSerial: serial, kind: kind, at: Sample.moment(seconds))
    }

    private static func note(
        _ marks: [ClientMark], in store: any ConformingStore, of user: InboxOwner = ann,
        at seconds: Int64 = 50
    ) async throws -> [NotedMark] {
        try await store.note(marks, of: user, at: Sample.moment(seconds))
    }

    static func marks(_ factory: any StoreFactory) async throws {
        var store = try await factory.makeReadyStore()
        let first = try await note(
            [
                mark(7, .delivered, at: 10), mark(7, .delivered, at: 9),
                mark(8, .opened, at: 20, device: nil), mark(7, .delivered, at: 11, serial: 3),
            ], in: store)
        #expect(first.map(\.isNewDelivery) == [true, false, true, true])
        #expect(first.map(\.isNewOpening) == [false, false, true, false])
        #expect(first[1].receipt == first[0].receipt)
        #expect(first[0].receipt.deliveredAt == Sample.moment(10))
        #expect(first[2].receipt.openedAt == Sample.moment(20))
        let second = try await note(
            [mark(7, .opened, at: 30), mark(7, .opened, at: 31), mark(7, .delivered, at: 32)],
            in: store)
        #expect(second.map(\.isNewDelivery) == [false, false, false])
        #expect(second.map(\.isNewOpening) == [true, false, false])
        store = try await factory.reopen(store)
        let kept = try await store.clientReceipts(of: ann, at: [LogPosition(7), LogPosition(9)])
        #expect(
            Set(kept) == [
                ClientReceipt(
                    position: LogPosition(7), device: Sample.identifier("phone"),
                    subscriptionSerial: nil, deliveredAt: Sample.moment(10),
                    openedAt: Sample.moment(30)),
                ClientReceipt(
                    position: LogPosition(7), device: Sample.identifier("phone"),
                    subscriptionSerial: 3, deliveredAt: Sample.moment(11)),
            ])
        let phone: DeviceID = Sample.identifier("phone")
        let merged = kept.merged(of: LogPosition(7), 3, to: phone)
        #expect(merged?.deliveredAt == Sample.moment(10))
        #expect(merged?.openedAt == Sample.moment(30))
        #expect(kept.merged(of: LogPosition(7), 3, to: Sample.identifier("tablet")) == nil)
        let unnamed = try await store.clientReceipts(of: ann, at: [LogPosition(8)])
        #expect(unnamed.merged(of: LogPosition(8), 3, to: phone)?.isDeliveredThere == false)
        #expect(unnamed.merged(of: LogPosition(8), 3, to: phone) != nil)
        // Reporting an already delivered notification as opened, without a device, is no second
        // delivery.
        let opened = try await note([mark(7, .opened, at: 40, device: nil)], in: store)
        #expect(opened.map(\.isNewDelivery) == [false])
        #expect(opened[0].receipt.deliveredAt == Sample.moment(10))
        let all = try await store.clientReceipts(of: ann, at: [LogPosition(7)])
        #expect(all.count == 3)
        #expect(all.merged(of: LogPosition(7), 3, to: phone)?.openedAt == Sample.moment(30))
    }

    static func ownership(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        _ = try await note([mark(7, .delivered, at: 10)], in: store)
        let position: Set = [LogPosition(7)]
        for (user, container) in [("bob", Sample.container), ("ann", Sample.otherContainer)] {
            let other = InboxOwner(container: container, user: Sample.identifier(user))
            #expect(try await store.clientReceipts(of: other, at: position) == [])
            let noted = try await note([mark(7, .opened, at: 12)], in: store, of: other)
            #expect(noted.map(\.isNewDelivery) == [true])
        }
        #expect(try await store.clientReceipts(of: ann, at: position).map(\.openedAt) == [nil])
    }

    static func surplus(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let most = UInt64(Limits.maximumClientReceiptsPerUser)
        let all = (1...most + 50).map { mark($0, .delivered, at: 10) }
        for start in stride(from: 0, to: all.count, by: 200) {
            _ = try await note(Array(all[start..<min(start + 200, all.count)]), in: store)
        }
        let kept = try await store.clientReceipts(of: ann, at: Set(all.map(\.position)))
        #expect(kept.map(\.position).sorted() == (51...most + 50).map { LogPosition($0) })
    }

    static func pruning(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        _ = try await note((1...5).map { mark($0, .delivered, at: 1) }, in: store, at: 10)
        _ = try await note([mark(6, .delivered, at: 1)], in: store, at: 60)
        var retention = Retention()
        retention.receiptAge = .seconds(50)
        let counts = try await store.prune(retention, at: Sample.moment(61), portion: 2)
        #expect(counts.clientReceipts == 5)
        let kept = try await store.clientReceipts(
            of: ann, at: Set((1...6).map { LogPosition($0) }))
        #expect(kept.map(\.position) == [LogPosition(6)])
    }

    static func finding(_ factory: any StoreFactory) async throws {
        let store = try await factory.makeReadyStore()
        let phone = try await store.register(
            Sample.device("phone", of: "ann", token: 1), at: Sample.moment(1))
        let tablet = try await store.register(
            Sample.device("tablet", of: "bob", token: 2, in: Sample.otherContainer),
            at: Sample.moment(1))
        var step = SettledStep(
            from: .start, to: ProgressMark(position: LogPosition(2), offset: 0))
        step.receipts =
            [1, 2].map { Sample.receipt($0, .accepted, at: 1) }
            + [3, 4].map { Sample.receipt($0, .accepted, at: 2) }
        try await store.settle(step)
        let wanted: Set = [Sample.deliveryID(1), Sample.deliveryID(4), Sample.deliveryID(9)]
        let newest = try await store.receipts(amongNewest: 100, at: nil) {
            wanted.contains($0.deliveryID)
        }
        #expect(Set(newest.map(\.deliveryID)) == [Sample.deliveryID(1), Sample.deliveryID(4)])
        let ofOne = try await store.receipts(amongNewest: 100, at: LogPosition(2)) {
            wanted.contains($0.deliveryID)
        }
        #expect(ofOne.map(\.deliveryID) == [Sample.deliveryID(4)])

        _ = try await store.forgetDevice(
            phone.device.id, of: phone.device.owner, in: Sample.container, at: Sample.moment(3))
        for _ in 0..<2 {
            let found = try await store.holders(ofDevices: [phone.serial, tablet.serial, 99])
            #expect(
                found == [
                    phone.serial: DeviceName(owner: ann, device: phone.device.id),
                    tablet.serial: DeviceName(
                        owner: InboxOwner(
                            container: Sample.otherContainer, user: Sample.identifier("bob")),
                        device: tablet.device.id),
                ])
            let head = try await store.head()
            try await store.settle(
                SettledStep(
                    from: try await store.mark(), to: ProgressMark(position: head, offset: 0)))
            // Pruning moves the ended subscription to the history, which only questions about the
            // past read.
            _ = try await store.prune(Retention(), at: Sample.moment(4))
        }
        let id = UUIDBytes(high: 7, low: 7)
        #expect(try await store.positions(ofNotifications: [id], of: ann) == [:])
    }
}
