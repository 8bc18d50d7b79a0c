import RelayModel
import Storage

extension ConfigurationKeys {
    /// The keys of upkeep: how long data is kept, and when changes are refused.
    static let upkeep = [
        ConfigurationKey(
            "storage.dedupeHours", time: \.store.dedupeWindow, in: .hour, 1...8760,
            "How long the relay remembers the ID or position of a change, so that the change "
                + "counts once."),
        ConfigurationKey(
            "storage.walMegabytes", number: \.store.walBytes, 1...65_536, unit: .mebibyte,
            "The size of the write-ahead log beyond which the relay starts it anew."),
        ConfigurationKey(
            "retention.logHours", zeroForNone: \.upkeep.retention.logAge, in: .hour, 0...876_000,
            "How long settled entries of the log are kept; 0 for ever."),
        ConfigurationKey(
            "retention.logMegabytes", zeroForNone: \.upkeep.retention.logBytes, 0...10_000_000,
            unit: .mebibyte,
            "About how large the log may be before its oldest settled entries go; 0 for no bound."),
        ConfigurationKey(
            "retention.dedupeKeys", zeroForNone: \.upkeep.retention.dedupeKeys,
            0...10_000_000_000,
            "About how many IDs and positions of changes the relay remembers for a container, "
                + "whatever `storage.dedupeHours` says; beyond that, it forgets the oldest; 0 for "
                + "no bound."),
        ConfigurationKey(
            "retention.receiptHours", zeroForNone: \.upkeep.retention.receiptAge, in: .hour,
            0...876_000,
            "How long receipts are kept; 0 for ever."),
        ConfigurationKey(
            "retention.receiptMegabytes", zeroForNone: \.upkeep.retention.receiptBytes,
            0...10_000_000, unit: .mebibyte,
            "About how large the receipts may be before the oldest go; 0 for no bound."),
        ConfigurationKey(
            "retention.deadLetterHours", zeroForNone: \.upkeep.retention.deadLetterAge, in: .hour,
            0...876_000,
            "How long dead letters are kept; 0 for ever."),
        ConfigurationKey(
            "retention.deadLetters", zeroForNone: \.upkeep.retention.deadLetters, 0...100_000_000,
            "About how many dead letters a container may have before the oldest go; 0 for no "
                + "bound."),
        ConfigurationKey(
            "retention.parkedHours", zeroForNone: \.upkeep.retention.parkedAge, in: .hour,
            0...876_000,
            "How long parked changes are kept; 0 for ever."),
        ConfigurationKey(
            "retention.parkedMegabytes", zeroForNone: \.upkeep.retention.parkedBytes,
            0...10_000_000, unit: .mebibyte,
            "The size of the parked changes; beyond it, the oldest go of the container that has "
                + "most; 0 for no bound."),
        ConfigurationKey(
            "retention.quarantineHours", zeroForNone: \.upkeep.retention.quarantineAge, in: .hour,
            0...876_000,
            "How long changes and ranges that were set aside as unreadable are kept; 0 for ever. "
                + "At most 1 GiB of changes is kept; beyond that, the oldest go of the container "
                + "that has most."),
        ConfigurationKey(
            "retention.auditHours", time: \.upkeep.auditAge, in: .hour, 1...876_000,
            "How long administrative calls stay in the audit log."),
        ConfigurationKey(
            "retention.auditEntries", number: \.upkeep.auditEntries, 100...10_000_000,
            "About how many calls the audit log keeps; beyond that, the oldest go of the token "
                + "that has most."),
        ConfigurationKey(
            "retention.shadowHours", zeroForNone: \.upkeep.retention.shadowAge, in: .hour,
            0...876_000,
            "How long a record's last version is known after its last change; 0 for ever. The "
                + "relay looks for such records once an hour, and more often if this is less than "
                + "a day. Records that clients keep in the relay stay. `records/changes` does not "
                + "tell of a record that was forgotten in this way."),
        ConfigurationKey(
            "retention.deletedHours", zeroForNone: \.upkeep.retention.deletedAge, in: .hour,
            0...876_000,
            "How long clients that come with a sync token are told of a deleted record, and how "
                + "long the version of a record that is not kept is known after its last change; "
                + "0 for ever."),
        ConfigurationKey(
            "bounds.logLag", number: \.upkeep.logLag, 0...1_000_000_000,
            "How many entries of the log may be unsettled before the relay refuses changes; 0 for "
                + "no bound."),
        ConfigurationKey(
            "bounds.retries", number: \.upkeep.retries, 0...1_000_000_000,
            "How many retries may wait before the relay refuses changes; 0 for no bound."),
        ConfigurationKey(
            "bounds.rangeSubscriptions", number: \.upkeep.rangeSubscriptions, 0...10_000_000_000,
            "How many subscriptions may wait in ranges before the relay refuses changes; 0 for no "
                + "bound."),
        ConfigurationKey(
            "bounds.walMegabytes", number: \.upkeep.walBytes, 0...10_000_000, unit: .mebibyte,
            "The size of the write-ahead log beyond which the relay refuses changes; 0 for no "
                + "bound."),
        ConfigurationKey(
            "bounds.databaseMegabytes", number: \.upkeep.databaseBytes, 0...10_000_000_000,
            unit: .mebibyte,
            "The size of the tables and indexes of a store on PostgreSQL beyond which the relay "
                + "refuses changes; 0 for no bound."),
        ConfigurationKey(
            "bounds.memoryMegabytes", number: \.upkeep.memoryBytes, 0...10_000_000, unit: .mebibyte,
            "The memory in use beyond which the relay refuses changes; 0 for no bound."),
        ConfigurationKey(
            "fanout.rangeThreshold", number: \.rangeThreshold, 1...1_000_000_000,
            "How many subscriptions a change may fire before the relay works them in ranges."),
        ConfigurationKey(
            "delivery.rangeInFlight", number: \.delivery.rangeInFlight,
            1...Limits.maximumDeliveriesInFlight,
            "How many deliveries of ranges may be sent and not yet settled, in addition to the "
                + "others."),
        ConfigurationKey(
            "delivery.retryInFlight", number: \.delivery.retryInFlight,
            1...Limits.maximumDeliveriesInFlight,
            "How many retries may be sent and not yet settled, in addition to the others."),
    ]
}
