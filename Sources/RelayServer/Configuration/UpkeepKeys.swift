import RelayModel
import Storage

extension ConfigurationKeys {
    /// The settings of upkeep: how long things are kept, and when changes are refused.
    static let upkeep = [
        ConfigurationKey(
            "storage.dedupeHours", time: \.store.dedupeWindow, in: .hour, 1...8760,
            "How long the ID or position of a change is remembered, so that it counts once."),
        ConfigurationKey(
            "storage.walMegabytes", number: \.store.walBytes, 1...65_536, unit: .mebibyte,
            "The size of the write-ahead log beyond which it is started anew."),
        ConfigurationKey(
            "retention.logHours", zeroForNone: \.upkeep.retention.logAge, in: .hour, 0...876_000,
            "How long settled entries of the log are kept; 0 for ever."),
        ConfigurationKey(
            "retention.logMegabytes", zeroForNone: \.upkeep.retention.logBytes, 0...10_000_000,
            unit: .mebibyte,
            "The size of the log, about, beyond which its oldest settled entries go; 0 for none."),
        ConfigurationKey(
            "retention.receiptHours", zeroForNone: \.upkeep.retention.receiptAge, in: .hour,
            0...876_000,
            "How long receipts are kept; 0 for ever."),
        ConfigurationKey(
            "retention.receiptMegabytes", zeroForNone: \.upkeep.retention.receiptBytes,
            0...10_000_000, unit: .mebibyte,
            "The size of the receipts, about, beyond which the oldest go; 0 for none."),
        ConfigurationKey(
            "retention.deadLetterHours", zeroForNone: \.upkeep.retention.deadLetterAge, in: .hour,
            0...876_000,
            "How long dead letters are kept; 0 for ever."),
        ConfigurationKey(
            "retention.deadLetters", zeroForNone: \.upkeep.retention.deadLetters, 0...100_000_000,
            "The dead letters of a container, about, beyond which the oldest go; 0 for none."),
        ConfigurationKey(
            "retention.parkedHours", zeroForNone: \.upkeep.retention.parkedAge, in: .hour,
            0...876_000,
            "How long parked changes are kept; 0 for ever."),
        ConfigurationKey(
            "retention.parkedMegabytes", zeroForNone: \.upkeep.retention.parkedBytes,
            0...10_000_000, unit: .mebibyte,
            "The size of the parked changes; beyond, the oldest go of who has most; 0 for none."),
        ConfigurationKey(
            "retention.quarantineHours", zeroForNone: \.upkeep.retention.quarantineAge, in: .hour,
            0...876_000,
            "How long changes and ranges that were set aside as unreadable are kept; 0 for ever. "
                + "Of changes 1 GiB at the most; beyond, the oldest go of who has most."),
        ConfigurationKey(
            "retention.auditHours", time: \.upkeep.auditAge, in: .hour, 1...876_000,
            "How long administrative calls stay in the audit log."),
        ConfigurationKey(
            "retention.auditEntries", number: \.upkeep.auditEntries, 100...10_000_000,
            "The calls in the audit log, about; beyond, the oldest go of the token that has most."),
        ConfigurationKey(
            "retention.shadowHours", zeroForNone: \.upkeep.retention.shadowAge, in: .hour,
            0...876_000,
            "How long a record's last version is known after its last change; 0 for ever. "
                + "Looked for once an hour, and more often if that is less than a day. "
                + "Records that clients keep in the relay stay. `records/changes` does not tell of "
                + "a record that is forgotten so."),
        ConfigurationKey(
            "retention.deletedHours", zeroForNone: \.upkeep.retention.deletedAge, in: .hour,
            0...876_000,
            "How long sync tokens are told of a deleted record; 0 for ever."),
        ConfigurationKey(
            "bounds.logLag", number: \.upkeep.logLag, 0...1_000_000_000,
            "The unsettled entries of the log beyond which changes are refused; 0 for none."),
        ConfigurationKey(
            "bounds.retries", number: \.upkeep.retries, 0...1_000_000_000,
            "The waiting retries beyond which changes are refused; 0 for none."),
        ConfigurationKey(
            "bounds.rangeSubscriptions", number: \.upkeep.rangeSubscriptions, 0...10_000_000_000,
            "The subscriptions that wait in ranges beyond which changes are refused; 0 for none."),
        ConfigurationKey(
            "bounds.walMegabytes", number: \.upkeep.walBytes, 0...10_000_000, unit: .mebibyte,
            "The size of the write-ahead log beyond which changes are refused; 0 for none."),
        ConfigurationKey(
            "bounds.memoryMegabytes", number: \.upkeep.memoryBytes, 0...10_000_000, unit: .mebibyte,
            "The memory in use beyond which changes are refused; 0 for none."),
        ConfigurationKey(
            "fanout.rangeThreshold", number: \.rangeThreshold, 1...1_000_000_000,
            "The subscriptions that a change fires beyond which they become ranges."),
        ConfigurationKey(
            "delivery.rangeInFlight", number: \.delivery.rangeInFlight,
            1...Limits.maximumDeliveriesInFlight,
            "The deliveries of ranges that are sent and not yet settled, beside the others."),
        ConfigurationKey(
            "delivery.retryInFlight", number: \.delivery.retryInFlight,
            1...Limits.maximumDeliveriesInFlight,
            "The retries that are sent and not yet settled, beside the others."),
    ]
}
