import RelayModel
import Storage

/// What happens to a courier's waiting notifications when its device is replaced or ends.
extension DeviceStep {
    /// Moves or drops the waiting notifications of `rivals` before those end in favour of `device`.
    ///
    /// Notifications for the same device of the same user move to its new courier; all others are
    /// dropped. The notifications taken last move too, so that they are not queued again there.
    func handOverCourier(
        of rivals: [DeviceVersion], to device: Device, in commit: OpenCommit
    ) throws {
        for rival in rivals where rival.device.gateway == .courier {
            let isHeir =
                device.gateway == .courier && rival.device.owner == device.owner
                && (rival.device.id == device.id || rival.device.token == device.token)
            guard isHeir else {
                try dropCourierNotifications(of: [rival.serial], in: commit)
                continue
            }
            for statement in [Self.handingOverWaiting, Self.handingOverTaken] {
                try commit.db.cachedStatement(sql: statement).execute(arguments: [
                    device.token.rawValue, rival.device.token.rawValue, container.id,
                ])
            }
        }
    }

    /// The number of taken notifications that move to another courier, and the number that may be
    /// deleted with a courier.
    ///
    /// Both are limited, because all other writers wait meanwhile.
    ///
    /// Notifications taken earlier than the last few are settled in nearly all cases.
    private static let mostTaken = (moved: 64, forgotten: 1000)

    static let handingOverWaiting = """
        UPDATE courierNotification
        SET courier = (SELECT id FROM courier WHERE token = ?1)
        WHERE courier = (SELECT id FROM courier WHERE token = ?2)
            AND container = ?3 AND takenAt IS NULL
        """

    static let handingOverTaken = """
        UPDATE courierNotification
        SET courier = (SELECT id FROM courier WHERE token = ?1)
        WHERE container = ?3 AND id IN (
            SELECT id FROM courierNotification
            WHERE courier = (SELECT id FROM courier WHERE token = ?2) AND takenAt IS NOT NULL
            ORDER BY takenAt DESC, id DESC LIMIT \(mostTaken.moved))
        """

    /// Drops the waiting notifications of devices that end.
    func dropCourierNotifications(of serials: [UInt64], in commit: OpenCommit) throws {
        let statement = try commit.db.cachedStatement(
            sql: """
                UPDATE courierNotification SET takenAt = ?1, payload = NULL
                WHERE takenAt IS NULL AND container = ?2 AND courier = (
                    SELECT courier.id FROM device JOIN courier ON courier.token = device.token
                    WHERE device.serial = ?3 AND device.gateway = 'courier')
                """)
        for serial in serials {
            try statement.execute(arguments: [now.stored, container.id, serial.stored])
        }
    }

    /// Ends a user's couriers beyond the maximum, the least recently polled first.
    func endSurplusCouriers(of owner: UserID, in commit: inout OpenCommit) throws {
        let serials = try UInt64.fetchAll(
            commit.db, sql: Self.surplusStatement,
            arguments: [container.id, owner.rawValue, Limits.maximumCouriersPerUser])
        try endAndTell(serials.sorted(), in: &commit)
        let forget = try commit.db.cachedStatement(sql: Self.forgettingCourier)
        for serial in serials { try forget.execute(arguments: [serial.stored]) }
    }

    /// The age from which a courier outlives its device for a day, so that its user can register it
    /// again after signing out.
    ///
    /// A younger courier ends with its device. Otherwise a client that creates and ends one courier
    /// after another would fill the store.
    private static let youth: Duration = .seconds(3600)

    /// Deletes the young couriers of ended devices with their queues, unless a queue is too large
    /// for one transaction.
    func forgetYoungCouriers(of serials: [UInt64], in commit: OpenCommit) throws {
        guard !serials.isEmpty else { return }
        let forget = try commit.db.cachedStatement(sql: Self.forgettingYoungCourier)
        let since = now.advanced(by: .zero - Self.youth)
        for serial in serials { try forget.execute(arguments: [serial.stored, since.stored]) }
    }

    private static let endedCourier = """
        token = (SELECT ending.token FROM device AS ending WHERE ending.serial = ?)
            AND NOT EXISTS (
                SELECT 1 FROM device WHERE device.token = courier.token
                    AND device.ended IS NULL AND device.gateway = 'courier')
        """

    static let forgettingYoungCourier = """
        DELETE FROM courier WHERE \(endedCourier) AND createdAt > ?
            AND NOT EXISTS (
                SELECT 1 FROM courierNotification AS queued
                WHERE queued.courier = courier.id LIMIT 1 OFFSET \(mostTaken.forgotten))
        """

    /// Deletes the courier of an ended device, unless another device uses it or its queued
    /// notifications may still be repeated.
    ///
    /// It would be deleted a day later anyway. Until then, a client that creates one courier after
    /// another would fill the store.
    static let forgettingCourier = """
        DELETE FROM courier WHERE \(endedCourier)
            AND NOT EXISTS (
                SELECT 1 FROM courierNotification AS queued WHERE queued.courier = courier.id)
        """

    /// Starts with the user, because a search that starts with the container reads all of its
    /// devices.
    ///
    /// The index contains active devices only; a user may have had many more.
    static let surplusStatement = """
        SELECT device.serial FROM user
            CROSS JOIN device INDEXED BY deviceActiveOwner ON device.owner = user.id
            CROSS JOIN courier ON courier.token = device.token
        WHERE user.container = ? AND user.name = ? AND device.ended IS NULL
            AND device.gateway = 'courier'
        ORDER BY courier.polledAt DESC, courier.id DESC LIMIT -1 OFFSET ?
        """
}
