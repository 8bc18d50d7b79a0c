import Storage

extension ConfigurationKeys {
    /// The keys of the quotas for containers that set none of their own.
    static let quotas = settings.map { setting in
        ConfigurationKey(
            "limits.\(setting.name)", number: \.store.quotas[setting.quota],
            1...Quota.largest / setting.factor, unit: setting.factor, setting.summary)
    }

    /// A quota under its name in the configuration.
    struct QuotaSetting {
        let name: String
        let quota: Quota
        /// The unit of the setting; byte quotas are set in mebibytes.
        let factor: Int
        let summary: String

        init(_ name: String, _ quota: Quota, _ summary: String, factor: Int = 1) {
            self.name = name
            self.quota = quota
            self.factor = factor
            self.summary = summary
        }
    }

    /// All quotas except that of queries, which is among the keys of record queries.
    static let settings = [
        QuotaSetting(
            "subscriptionsPerUser", .userSubscriptions,
            "How many subscriptions one user may have, in all databases of a container."),
        QuotaSetting(
            "subscriptionMegabytesPerUser", .userSubscriptionBytes,
            "The size of the subscriptions that one user may have.", factor: .mebibyte),
        QuotaSetting(
            "subscriptionsPerContainer", .subscriptions,
            "How many subscriptions one container may have."),
        QuotaSetting(
            "subscriptionMegabytesPerContainer", .subscriptionBytes,
            "The size of the subscriptions that one container may have.", factor: .mebibyte),
        QuotaSetting(
            "devicesPerUser", .userDevices,
            "How many devices one user may have; a further one ends the device whose last "
                + "registration is the oldest."),
        QuotaSetting("devicesPerContainer", .devices, "How many devices one container may have."),
        QuotaSetting(
            "recordsPerUser", .userRecords,
            "How many records one user may keep in a container: in the private database, or "
                + "created in the public one."),
        QuotaSetting(
            "recordMegabytesPerUser", .userRecordBytes,
            "The size of the records that one user may keep in a container, including what the "
                + "relay remembers of deleted ones.",
            factor: .mebibyte),
        QuotaSetting(
            "recordsPerContainer", .records, "How many records one container may keep."),
        QuotaSetting(
            "recordMegabytesPerContainer", .recordBytes,
            "The size of the records that one container may keep, including what the relay "
                + "remembers of deleted ones.",
            factor: .mebibyte),
        QuotaSetting(
            "zonesPerDatabase", .databaseZones,
            "How many zones one database may have apart from the default one; deleted zones "
                + "count."),
        QuotaSetting(
            "zonesPerContainer", .zones,
            "How many zones one container may have apart from default ones; deleted zones count."),
    ]
}
