import Storage

extension ConfigurationKeys {
    /// The quotas of containers that set none of their own.
    static let quotas = settings.map { setting in
        ConfigurationKey(
            "limits.\(setting.name)", number: \.store.quotas[setting.quota],
            1...Quota.largest / setting.factor, unit: setting.factor, setting.summary)
    }

    /// A quota under the name that an operator gives it.
    struct QuotaSetting {
        let name: String
        let quota: Quota
        /// Bytes are set in mebibytes.
        let factor: Int
        let summary: String

        init(_ name: String, _ quota: Quota, _ summary: String, factor: Int = 1) {
            self.name = name
            self.quota = quota
            self.factor = factor
            self.summary = summary
        }
    }

    /// Every quota but that of queries, which is with their settings.
    static let settings = [
        QuotaSetting(
            "subscriptionsPerUser", .userSubscriptions,
            "The subscriptions of one user, in all databases of a container."),
        QuotaSetting(
            "subscriptionMegabytesPerUser", .userSubscriptionBytes,
            "The size of the subscriptions of one user.", factor: .mebibyte),
        QuotaSetting(
            "subscriptionsPerContainer", .subscriptions, "The subscriptions of one container."),
        QuotaSetting(
            "subscriptionMegabytesPerContainer", .subscriptionBytes,
            "The size of the subscriptions of one container.", factor: .mebibyte),
        QuotaSetting(
            "devicesPerUser", .userDevices,
            "The devices of one user; a further one ends the one that was not registered for "
                + "longest."),
        QuotaSetting("devicesPerContainer", .devices, "The devices of one container."),
        QuotaSetting(
            "recordsPerUser", .userRecords,
            "The records that one user keeps in a container: in the private database, or created "
                + "in the public one."),
        QuotaSetting(
            "recordMegabytesPerUser", .userRecordBytes,
            "The size of these records, with what is remembered of deleted ones.",
            factor: .mebibyte),
        QuotaSetting(
            "recordsPerContainer", .records, "The records that one container keeps."),
        QuotaSetting(
            "recordMegabytesPerContainer", .recordBytes,
            "The size of these records, with what is remembered of deleted ones.",
            factor: .mebibyte),
        QuotaSetting(
            "zonesPerDatabase", .databaseZones,
            "The zones of one database but for the default one, deleted ones included."),
        QuotaSetting(
            "zonesPerContainer", .zones,
            "The zones of one container but for default ones, deleted ones included."),
    ]
}
