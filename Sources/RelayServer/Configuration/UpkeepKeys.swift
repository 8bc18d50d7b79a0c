import RelayModel
import Storage

extension ConfigurationKeys {
    /// The settings of upkeep: how long things are kept, and when changes are refused.
    static let upkeep = [
        ConfigurationKey(
            "storage.dedupeHours", .integer(1...8760), default: "72",
            "How long the ID or position of a change is remembered, so that it counts once."),
        ConfigurationKey(
            "storage.walMegabytes", .integer(1...65_536), default: "64",
            "The size of the write-ahead log beyond which it is started anew."),
        ConfigurationKey(
            "retention.logHours", .integer(0...876_000), default: "168",
            "How long settled entries of the log are kept; 0 for ever."),
        ConfigurationKey(
            "retention.logMegabytes", .integer(0...10_000_000), default: "10240",
            "The size of the log, about, beyond which its oldest settled entries go; 0 for none."),
        ConfigurationKey(
            "retention.receiptHours", .integer(0...876_000), default: "168",
            "How long receipts are kept; 0 for ever."),
        ConfigurationKey(
            "retention.receiptMegabytes", .integer(0...10_000_000), default: "1024",
            "The size of the receipts, about, beyond which the oldest go; 0 for none."),
        ConfigurationKey(
            "retention.deadLetterHours", .integer(0...876_000), default: "720",
            "How long dead letters are kept; 0 for ever."),
        ConfigurationKey(
            "retention.deadLetters", .integer(0...100_000_000), default: "1000000",
            "The dead letters of a container, about, beyond which the oldest go; 0 for none."),
        ConfigurationKey(
            "retention.parkedHours", .integer(0...876_000), default: "720",
            "How long parked changes are kept; 0 for ever."),
        ConfigurationKey(
            "retention.parkedMegabytes", .integer(0...10_000_000), default: "1024",
            "The size of the parked changes beyond which the oldest go; 0 for none."),
        ConfigurationKey(
            "retention.quarantineHours", .integer(0...876_000), default: "2160",
            "How long changes and ranges that were set aside as unreadable are kept; 0 for ever."),
        ConfigurationKey(
            "retention.auditHours", .integer(1...876_000), default: "8760",
            "How long administrative calls stay in the audit log."),
        ConfigurationKey(
            "retention.auditEntries", .integer(100...10_000_000), default: "100000",
            "The administrative calls in the audit log, about, beyond which the oldest go."),
        ConfigurationKey(
            "retention.shadowHours", .integer(0...876_000), default: "0",
            "How long a record's last version is known after its last change; 0 for ever. "
                + "Records that clients keep in the relay stay."),
        ConfigurationKey(
            "retention.deletedHours", .integer(0...876_000), default: "2160",
            "How long sync tokens are told of a deleted record; 0 for ever."),
        ConfigurationKey(
            "bounds.logLag", .integer(0...1_000_000_000), default: "5000000",
            "The unsettled entries of the log beyond which changes are refused; 0 for none."),
        ConfigurationKey(
            "bounds.retries", .integer(0...1_000_000_000), default: "5000000",
            "The waiting retries beyond which changes are refused; 0 for none."),
        ConfigurationKey(
            "bounds.rangeSubscriptions", .integer(0...10_000_000_000), default: "50000000",
            "The subscriptions that wait in ranges beyond which changes are refused; 0 for none."),
        ConfigurationKey(
            "bounds.walMegabytes", .integer(0...10_000_000), default: "4096",
            "The size of the write-ahead log beyond which changes are refused; 0 for none."),
        ConfigurationKey(
            "bounds.memoryMegabytes", .integer(0...10_000_000), default: "0",
            "The memory in use beyond which changes are refused; 0 for none."),
        ConfigurationKey(
            "fanout.rangeThreshold", .integer(1...1_000_000_000), default: "10000",
            "The subscriptions that a change fires beyond which they become ranges."),
        ConfigurationKey(
            "delivery.rangeInFlight", .integer(1...Limits.maximumDeliveriesInFlight),
            default: "512",
            "The deliveries of ranges that are sent and not yet settled, beside the others."),
        ConfigurationKey(
            "delivery.retryInFlight", .integer(1...Limits.maximumDeliveriesInFlight),
            default: "2048",
            "The retries that are sent and not yet settled, beside the others."),
    ]
}

extension Upkeep.Settings {
    init(_ values: ConfigurationValues) {
        func hours(_ name: String) -> Duration? {
            let number = values.integer(name)
            return number == 0 ? nil : .seconds(number * 3600)
        }
        func bytes(_ name: String) -> Int? {
            let number = values.integer(name)
            return number == 0 ? nil : number * 1_048_576
        }
        retention.logAge = hours("retention.logHours")
        retention.logBytes = bytes("retention.logMegabytes")
        retention.receiptAge = hours("retention.receiptHours")
        retention.receiptBytes = bytes("retention.receiptMegabytes")
        retention.deadLetterAge = hours("retention.deadLetterHours")
        let letters = values.integer("retention.deadLetters")
        retention.deadLetters = letters == 0 ? nil : letters
        retention.parkedAge = hours("retention.parkedHours")
        retention.parkedBytes = bytes("retention.parkedMegabytes")
        retention.quarantineAge = hours("retention.quarantineHours")
        retention.shadowAge = hours("retention.shadowHours")
        retention.deletedAge = hours("retention.deletedHours")
        auditAge = .seconds(values.integer("retention.auditHours") * 3600)
        auditEntries = values.integer("retention.auditEntries")
        courierIdle = .seconds(values.integer("courier.idleDays") * 86_400)
        inboxAge = .seconds(values.integer("inbox.days") * 86_400)
        logLag = values.integer("bounds.logLag")
        retries = values.integer("bounds.retries")
        rangeSubscriptions = values.integer("bounds.rangeSubscriptions")
        walBytes = bytes("bounds.walMegabytes") ?? 0
        memoryBytes = bytes("bounds.memoryMegabytes") ?? 0
    }
}
