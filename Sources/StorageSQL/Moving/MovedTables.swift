/// The tables that are moved, and their order.
package enum MovedTables {
    /// The tables whose rows are moved one by one.
    ///
    /// A table comes after those that its rows refer to.
    package static let order = [
        "container", "accesskey", "changesource", "user", "device", "subscription", "onceclaim",
        "logentry", "dedupe", "shadowrecord", "parkedchange", "progress", "receiptblock", "retry",
        "deadletter", "providertoken", "statesnapshot", "account", "rangetask", "quarantine",
        "recordzone", "recordtype", "recordfield", "schemarole", "courier", "couriernotification",
        "inbox", "notification", "usersession", "backlog", "quarantinedrange", "badge",
        "usedsignature", "secretseal", "sessionsecret", "admintoken", "auditentry", "dearstrike",
        "disabledsubscription", "quotause", "zonememory", "pastsubscription", "pastdevice",
        "firingblock", "subscriptionhealth", "clientreceipt", "digest",
        "throttleplace", "forgottentype",
    ]

    /// The tables whose content is moved separately and not row by row: the identity, and the head.
    static let special: Set<String> = ["store", "shard", "shardhead"]

    /// The tables that belong to a store at its place: its schema, its owner, and the move itself.
    static let local: Set<String> = [
        "migration", "ownership", "commitmark", "storemove", "relaynode",
    ]

    /// The tables that have rows in a new store, or after a relay has opened it.
    static let seeded = ["progress", "backlog", "secretseal", "sessionsecret", "statesnapshot"]

    /// The columns that are written but not compared, because every opening of the store counts
    /// them up.
    static let uncompared: Set<String> = ["progress.epoch"]

    /// The tables whose rows the database numbers, in SQLite's spelling, with the numbered column.
    static let numbered = [
        ("container", "id"), ("user", "id"), ("device", "serial"), ("subscription", "serial"),
        ("parkedChange", "number"), ("receiptBlock", "id"), ("rangeTask", "id"), ("courier", "id"),
        ("courierNotification", "id"), ("auditEntry", "id"), ("firingBlock", "id"),
        ("digest", "id"),
    ]
}
