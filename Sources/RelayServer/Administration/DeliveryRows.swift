import Delivery
import RelayModel
import Storage

/// The current state of a delivery.
enum DeliveryStanding: String, CaseIterable {
    case delivered, waiting, dead, seen
    /// The delivery was folded into a digest, and another delivery's push reported it.
    case folded

    init(_ outcome: DeliveryReceipt.Outcome) {
        self =
            switch outcome {
            case .accepted: .delivered
            case .deferred: .waiting
            case .unregistered, .dead: .dead
            case .seen: .seen
            }
    }
}

extension DeliveryReceipt {
    /// Whether the receipt says that the delivery was held for its recipient's sake.
    var isHeld: Bool { outcome == .deferred && WaitReason(stored: reason).hold != nil }
}

/// A retry with the reason for its wait and the time until which it waits.
struct WaitingRetry: Sendable {
    let retry: Retry
    let kind: String
    let until: Timestamp
    let reason: String
    /// The halt that holds the retry; `nil` if none does.
    let halt: HaltInForce?

    /// Creates a waiting retry, and finds the halt that holds it.
    ///
    /// A halt that ends before the delivery is due does not hold it.
    init(_ retry: Retry, among halts: [HaltInForce], at now: Timestamp) {
        self.retry = retry
        let dueAt = retry.dueAt
        let halt = halts.filter { $0.holds(retry.delivery.delivery) }
            .max { $0.until < $1.until }
        self.halt = halt.flatMap { dueAt <= max(now, $0.until) ? $0 : nil }
        if let halt, dueAt <= max(now, halt.until) {
            (kind, until, reason) = ("halt", halt.until, halt.reason)
        } else if retry.reason.hold != nil, now < dueAt {
            (kind, until, reason) = ("held", dueAt, retry.reason.text)
        } else if retry.reason.isPace {
            (kind, until, reason) = ("pace", dueAt, retry.reason.text)
        } else {
            // A retry that is due waits only for its turn.
            (kind, until, reason) = (dueAt <= now ? "turn" : "backOff", dueAt, retry.reason.text)
        }
    }
}

extension AdministrationRows {
    /// An owed delivery with its payload; the device token is redacted.
    private static let owed: [AdministrationRow<OwedDelivery>.Member] = [
        .always("deliveryID", .text) { .string($0.delivery.id.description) },
        .always("position", .text) { .string($0.delivery.ordinal.position.description) },
        .always("subscriptionID", .text) { .string($0.delivery.subscriptionID.rawValue) },
        .always("userRecordName", .text) { .string($0.delivery.owner.rawValue) },
        .always("deviceID", .text) { .string($0.delivery.deviceID.rawValue) },
        .always("apnsToken", .text) { .string($0.delivery.token.description) },
        .always("topic", .text) { .string($0.delivery.notification.topic) },
        .always("payload", JSONForm([:])) {
            let payload = $0.delivery.notification.payload
            return (try? JSONValue(stored: payload))
                ?? .string(String(decoding: payload, as: UTF8.self))
        },
    ]

    private static let owedColumns: [AdministrationColumn] = [
        .init("delivery", "deliveryID"), .init("position", "position"),
        .init("user", "userRecordName"), .init("subscription", "subscriptionID"),
        .init("device", "deviceID"), .init("attempts", "attempts"),
    ]

    static let retry = AdministrationRow<WaitingRetry>(
        owed.map { $0.of { $0.retry.delivery } } + [
            .always("attempts", .integer) { .integer(Int64($0.retry.attempts)) },
            .always("dueAt", .text) { .string($0.retry.dueAt.iso8601) },
            .always("reason", .text) { .string($0.retry.reason.text) },
            .always("pause", .object) { waiting in
                [
                    "kind": .string(waiting.kind), "until": .string(waiting.until.iso8601),
                    "reason": .string(waiting.reason),
                ]
            },
        ],
        columns: owedColumns + [
            .init("due", "dueAt"), .init("waits for", "pause.kind"),
            .init("until", "pause.until"), .init("reason", "pause.reason"),
        ])

    static let deadLetter = AdministrationRow<DeadLetter>(
        owed.map { $0.of { $0.delivery } } + [
            .always("attempts", .integer) { .integer(Int64($0.attempts)) },
            .always("status", .integer) { .integer(Int64($0.status)) },
            .always("reason", .text) { .string($0.reason) },
            .always("at", .text) { .string($0.at.iso8601) },
        ],
        columns: owedColumns + [
            .init("status", "status"), .init("ended", "at"), .init("reason", "reason"),
        ])

    /// The members that identify a receipt's delivery: numbers, and names as far as they are still
    /// known.
    private static let receipted: [AdministrationRow<NamedReceipt>.Member] = [
        .always("deliveryID", .text) { .string($0.receipt.deliveryID.description) },
        .always("position", .text) { .string($0.receipt.ordinal.position.description) },
        .always("offset", .integer) { .integer(Int64($0.receipt.ordinal.offset)) },
        .always("subscriptionSerial", .text) { .string(String($0.receipt.subscriptionSerial)) },
        .always("deviceSerial", .text) { .string(String($0.receipt.deviceSerial)) },
        .maybe("userRecordName", .text) { $0.subscription.map { .string($0.owner.rawValue) } },
        .maybe("subscriptionID", .text) { $0.subscription.map { .string($0.id.rawValue) } },
        .maybe("deviceID", .text) { $0.device.map { .string($0.rawValue) } },
        .always("status", .integer) { .integer(Int64($0.receipt.status)) },
        .always("reason", .text) { .string($0.receipt.reason) },
        .always("at", .text) { .string($0.receipt.at.iso8601) },
    ]

    private static let receiptedColumns: [AdministrationColumn] = [
        .init("delivery", "deliveryID"), .init("position", "position"),
        .init("user", "userRecordName"), .init("subscription", "subscriptionID"),
        .init("device", "deviceID"),
    ]

    static let receipt = AdministrationRow<NamedReceipt>(
        receipted + [
            .always("outcome", .words(DeliveryReceipt.Outcome.allCases.map(\.word))) {
                .string($0.receipt.outcome.word)
            },
            .always("attempt", .integer) { .integer(Int64($0.receipt.attempt)) },
        ],
        columns: receiptedColumns + [
            .init("outcome", "outcome"), .init("status", "status"),
            .init("attempt", "attempt"), .init("at", "at"), .init("reason", "reason"),
        ])

    /// The columns that list the receipts of one delivery.
    static let attemptColumns: [AdministrationColumn] = [
        .init("attempt", "attempt"), .init("outcome", "outcome"), .init("status", "status"),
        .init("at", "at"), .init("reason", "reason"),
    ]

    /// The newest receipt of a delivery, and the delivery's state.
    static let delivery = AdministrationRow<
        (newest: NamedReceipt, standing: DeliveryStanding, client: PushReceipt?)
    >(
        receipted.map { $0.of { $0.newest } } + [
            .always("state", .words(of: DeliveryStanding.self)) {
                .string($0.standing.rawValue)
            },
            .always("attempts", .integer) { .integer(Int64($0.newest.receipt.attempt)) },
            .maybe("deliveredAt", .text) {
                $0.client.map { .string($0.deliveredAt.iso8601) }
            },
            .maybe("openedAt", .text) {
                $0.client?.openedAt.map { .string($0.iso8601) }
            },
        ],
        columns: receiptedColumns + [
            .init("state", "state"), .init("attempts", "attempts"), .init("status", "status"),
            .init("at", "at"), .init("reason", "reason"), .init("delivered", "deliveredAt"),
            .init("opened", "openedAt"),
        ])
}

/// A receipt with the names of its subscription and device, as far as they are still known.
struct NamedReceipt: Sendable {
    let receipt: DeliveryReceipt
    let subscription: VersionNames.Subscription?
    let device: DeviceID?

    init(_ receipt: DeliveryReceipt, _ names: VersionNames) {
        self.receipt = receipt
        subscription = names.subscriptions[receipt.subscriptionSerial]
        device = names.devices[receipt.deviceSerial]
    }
}

extension ListRegistry {
    /// Returns the names of the subscriptions and devices in `receipts`.
    func names(of receipts: [DeliveryReceipt]) async throws -> VersionNames {
        try await names(
            subscriptions: Set(receipts.map(\.subscriptionSerial)),
            devices: Set(receipts.map(\.deviceSerial)))
    }
}
