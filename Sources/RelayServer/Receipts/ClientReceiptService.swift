import Fanout
import Metrics
import RelayModel
import Storage

/// Finds the notifications that a user's client reports about, and records the reports.
///
/// It reveals nothing about other users: their notifications are answered like unknown ones.
struct ClientReceiptService: Sendable {
    /// The outcome of one item.
    enum Outcome: Sendable {
        /// The report was recorded; the value is all that was reported about the notification.
        case noted(ClientReceipt)
        /// The report was refused.
        case refused(APIError)
    }

    /// The parts of the store that the service needs.
    typealias Known = ClientReceiptRegistry & PastRegistry

    /// The maximum number of receipts that are searched for items without a position, or for one
    /// change.
    private static let mostReceipts = 100_000
    /// The maximum number of the user's deleted devices whose receipts are searched.
    private static let mostEndedDevices = 20

    let registry: any Known
    private let meter = ClientReceiptMeter()

    init(registry: any Known) {
        self.registry = registry
    }

    /// Records the reports of a client; the outcomes are in the order of the items.
    func mark(
        _ marking: ClientMarking, _ kind: ClientMark.Kind, of user: InboxOwner,
        within allowance: QueryAllowance, at now: Timestamp
    ) async throws -> [Outcome] {
        if let device = marking.device { try await check(device, of: user) }
        let places = try await Places(of: marking, user, self, allowance)
        let appended = try await registry.moments(
            of: Array(Set(places.found.values.map(\.position))))
        var marks: [(item: Int, mark: ClientMark)] = []
        for (index, item) in marking.items.enumerated() {
            guard let place = places.found[index] else { continue }
            marks.append(
                (
                    index,
                    ClientMark(
                        position: place.position, device: place.device ?? marking.device,
                        subscriptionSerial: place.subscriptionSerial, kind: kind,
                        at: Self.moment(item.at, after: appended[place.position], now))
                ))
        }
        let noted = try await registry.note(marks.map(\.mark), of: user, at: now)
        meter.count(noted, appended: appended)
        var outcomes = marking.items.indices.map { index in
            Outcome.refused(places.isCut(index) ? .notLookedFor : .noSuchNotification)
        }
        for ((index, _), noted) in zip(marks, noted) { outcomes[index] = .noted(noted.receipt) }
        return outcomes
    }

    /// Returns when the delivery or opening happened.
    ///
    /// The client's clock may be wrong in any way, so the time is limited to between the change and
    /// this call.
    private static func moment(
        _ said: Timestamp?, after appended: Timestamp?, _ now: Timestamp
    ) -> Timestamp {
        let latest = min(said ?? now, now)
        return max(latest, min(appended ?? latest, now))
    }

    private func check(_ device: DeviceID, of user: InboxOwner) async throws {
        let named = try await registry.pastDevices(
            of: user.user, in: user.container, .named(device, limit: 1))
        guard named.isEmpty else { return }
        throw APIError(.notFound, "deviceID: you have no device \"\(device)\"")
    }

    // MARK: Which notifications are meant

    /// The place of a notification in the log.
    private struct Place: Sendable {
        var position: LogPosition
        /// The device and the subscription, if one push was named.
        var device: DeviceID?
        var subscriptionSerial: UInt64?
    }

    /// The places of those items that are the user's notifications, by the index of the item.
    private struct Places {
        private(set) var found: [Int: Place] = [:]
        private var cut: Set<Int> = []
        private let user: InboxOwner
        private let registry: any Known
        private let identity: DeliveryIdentity

        init(
            of marking: ClientMarking, _ user: InboxOwner, _ service: ClientReceiptService,
            _ allowance: QueryAllowance
        ) async throws {
            self.user = user
            registry = service.registry
            identity = DeliveryIdentity(store: service.registry.shardIdentity)
            var notifications: [Int: UUIDBytes] = [:]
            var deliveries: [LogPosition?: [Int: DeliveryID]] = [:]
            for (index, item) in marking.items.enumerated() {
                switch item.name {
                case .notification(let id): notifications[index] = id
                case .delivery(let id): deliveries[item.position, default: [:]][index] = id
                case .nothing: break
                }
            }
            findByPosition(&notifications, marking)
            try await findInInbox(&notifications)
            var receipts: [Int: DeliveryReceipt] = [:]
            for (position, ids) in deliveries where position != nil {
                try await find(ids, at: position, allowance, into: &receipts)
            }
            try await find(
                deliveries[LogPosition?.none] ?? [:], at: nil, allowance, into: &receipts)
            try await place(receipts)
            try await findAmongNewest(notifications, allowance)
        }

        func isCut(_ index: Int) -> Bool { cut.contains(index) }

        /// Finds the notifications that were named with their position.
        ///
        /// Only a client that received a `nid` can know it, because it is derived from the store's
        /// secret identity.
        private mutating func findByPosition(
            _ ids: inout [Int: UUIDBytes], _ marking: ClientMarking
        ) {
            for (index, id) in ids {
                guard let position = marking.items[index].position else { continue }
                ids[index] = nil
                if identity.notificationID(position: position, owner: user.user) == id {
                    found[index] = Place(position: position)
                }
            }
        }

        private mutating func findInInbox(_ ids: inout [Int: UUIDBytes]) async throws {
            let known = try await registry.positions(
                ofNotifications: Array(Set(ids.values)), of: user)
            for (index, id) in ids {
                guard let position = known[id] else { continue }
                ids[index] = nil
                found[index] = Place(position: position)
            }
        }

        /// Finds pushes among the receipts of one change, or among the newest receipts.
        private mutating func find(
            _ ids: [Int: DeliveryID], at position: LogPosition?, _ allowance: QueryAllowance,
            into found: inout [Int: DeliveryReceipt]
        ) async throws {
            guard !ids.isEmpty else { return }
            try Task.checkCancellation()
            guard !allowance.isOver else { return cut.formUnion(ids.keys) }
            let wanted = Set(ids.values)
            let receipts = try await registry.receipts(
                amongNewest: ClientReceiptService.mostReceipts, at: position
            ) { wanted.contains($0.deliveryID) }
            for (index, id) in ids {
                found[index] = receipts.first { $0.deliveryID == id }
            }
        }

        /// Adds the places of those receipts that belong to the user's devices.
        private mutating func place(_ receipts: [Int: DeliveryReceipt]) async throws {
            let holders = try await registry.holders(
                ofDevices: Set(receipts.values.map(\.deviceSerial)))
            for (index, receipt) in receipts {
                guard let holder = holders[receipt.deviceSerial], holder.owner == user
                else { continue }
                found[index] = Place(
                    position: receipt.ordinal.position, device: holder.device,
                    subscriptionSerial: receipt.subscriptionSerial)
            }
        }

        /// Finds notifications that were named without their position, among the pushes that the
        /// user's devices received.
        private mutating func findAmongNewest(
            _ notifications: [Int: UUIDBytes], _ allowance: QueryAllowance
        ) async throws {
            guard !notifications.isEmpty else { return }
            try Task.checkCancellation()
            guard !allowance.isOver else { return cut.formUnion(notifications.keys) }
            let devices = try await devices()
            let receipts = try await registry.receipts(
                amongNewest: ClientReceiptService.mostReceipts, at: nil
            ) { devices.contains($0.deviceSerial) }
            var positions: [UUIDBytes: LogPosition] = [:]
            for position in Set(receipts.map(\.ordinal.position)) {
                positions[identity.notificationID(position: position, owner: user.user)] =
                    position
            }
            for (index, id) in notifications {
                found[index] = positions[id].map { Place(position: $0) }
            }
        }

        /// Returns the serials of the user's devices, and of some that were deleted.
        private func devices() async throws -> Set<UInt64> {
            let end = LogPosition(UInt64(Int64.max))
            let active = try await registry.pastDevices(
                of: user.user, in: user.container, .hearing(end))
            let ended = try await registry.pastDevices(
                of: user.user, in: user.container,
                .endedBefore(end, limit: ClientReceiptService.mostEndedDevices))
            return Set((active + ended).map(\.serial))
        }
    }
}

private extension APIError {
    static let noSuchNotification = APIError(
        .notFound,
        "there is no such notification of this user, or it is not settled yet, or its receipts are "
            + "no longer kept; with its position (belfry.seq), a notificationID is found at once "
            + "and forever")
    static let notLookedFor = APIError(
        .tryAgainLater,
        "the time limit of the request was reached before it was looked up; send it again",
        retryAfter: 1)
}

/// Counts the reports of clients.
private struct ClientReceiptMeter: Sendable {
    private let delivered = Counter(
        label: "belfry_client_receipts_total", dimensions: [("kind", "delivered")])
    private let opened = Counter(
        label: "belfry_client_receipts_total", dimensions: [("kind", "opened")])
    private let delay = Metrics.Timer(label: "belfry_change_to_device_seconds")

    /// Counts the reports that were new.
    func count(_ noted: [NotedMark], appended: [LogPosition: Timestamp]) {
        for mark in noted {
            if mark.isNewOpening { opened.increment() }
            guard mark.isNewDelivery else { continue }
            delivered.increment()
            guard let start = appended[mark.receipt.position] else { continue }
            delay.record(duration: mark.receipt.deliveredAt.duration(since: start))
        }
    }
}
