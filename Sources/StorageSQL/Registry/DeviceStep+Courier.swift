import RelayModel
import Storage

/// What becomes of what waits for a courier when its device changes hands or goes.
extension DeviceStep {
    /// Before `rivals` end for the sake of `device`: what waits for the same user's same device
    /// goes to its new courier, and everything else that waits for them is dropped.
    ///
    /// What was taken last goes along, so that it is not queued again there.
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

    /// How much that was taken from a courier goes along to another one, and how much may be
    /// forgotten with it: everybody waits for that.
    ///
    /// What was taken before the last few is settled, or nearly always.
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

    /// Drops what waits for devices that end.
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

    /// Ends the couriers of a user that are too many, the least recently polled first.
    func endSurplusCouriers(of owner: UserID, in commit: inout OpenCommit) throws {
        let serials = try UInt64.fetchAll(
            commit.db, sql: Self.surplusStatement,
            arguments: [container.id, owner.rawValue, Limits.maximumCouriersPerUser])
        try endAndTell(serials.sorted(), in: &commit)
        let forget = try commit.db.cachedStatement(sql: Self.forgettingCourier)
        for serial in serials { try forget.execute(arguments: [serial.stored]) }
    }

    /// How old a courier is that outlives its device for a day, so that its user can register it
    /// again after a sign-out.
    ///
    /// A younger one ends with its device: whoever creates one after the other, and ends each,
    /// would fill the store.
    private static let youth: Duration = .seconds(3600)

    /// Forgets the young couriers of devices that have ended, with what was queued in them, unless
    /// that is too much for one transaction.
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

    /// Forgets the courier of a device that has ended, unless another device has it, or what was
    /// queued in it may be repeated still.
    ///
    /// A day later it would go anyway. Until then whoever creates one after the other would fill
    /// the store.
    static let forgettingCourier = """
        DELETE FROM courier WHERE \(endedCourier)
            AND NOT EXISTS (
                SELECT 1 FROM courierNotification AS queued WHERE queued.courier = courier.id)
        """

    /// Begins with the user, because a search that begins with the container reads all its devices;
    /// and reads none of those that the user had, which may be many more.
    static let surplusStatement = """
        SELECT device.serial FROM user
            CROSS JOIN device INDEXED BY deviceActiveOwner ON device.owner = user.id
            CROSS JOIN courier ON courier.token = device.token
        WHERE user.container = ? AND user.name = ? AND device.ended IS NULL
            AND device.gateway = 'courier'
        ORDER BY courier.polledAt DESC, courier.id DESC LIMIT -1 OFFSET ?
        """
}
