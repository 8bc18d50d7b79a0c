/// Which tables are moved, and in which order.
package enum MovedTables {
    /// Those whose rows are moved one by one; what a row refers to comes before it.
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

    /// Those that are moved by what they say, and not by their rows: the identity, and the head.
    static let special: Set<String> = ["store", "shard", "shardhead"]

    /// Those that belong to a store at its place: its schema, its owner, and the move itself.
    static let local: Set<String> = [
        "migration", "ownership", "commitmark", "storemove", "relaynode",
    ]

    /// Those that have rows in a new store, or once a relay has looked at it.
    static let seeded = ["progress", "backlog", "secretseal", "sessionsecret", "statesnapshot"]

    /// Columns that are written and not compared: who opens the store counts its openings.
    static let uncompared: Set<String> = ["progress.epoch"]

    /// Tables whose rows the database numbers, as SQLite names them, and the column.
    static let numbered = [
        ("container", "id"), ("user", "id"), ("device", "serial"), ("subscription", "serial"),
        ("parkedChange", "number"), ("receiptBlock", "id"), ("rangeTask", "id"), ("courier", "id"),
        ("courierNotification", "id"), ("auditEntry", "id"), ("firingBlock", "id"),
        ("digest", "id"),
    ]
}
