import Foundation
import GRDB
package import RelayModel
package import Storage

extension RelayStore {
    package func redriveDeadLetters(
        _ ids: [DeliveryID]?, of container: ContainerKey, reason: String?, at now: Timestamp
    ) async throws -> Redriving {
        let expiration = #"json_extract(body, '$.expiration."$ts"[0]')"#
        let expired = "json_valid(body) AND \(expiration) <= \(now.seconds)"
        // What is no JSON could not be sent either, and stays where it is.
        let live = "json_valid(body) AND (\(expiration) IS NULL OR \(expiration) > \(now.seconds))"
        let redriven = try await letters(ids, of: container, reason, live) { db, container, id in
            // The attempts begin anew; the reason says for whom.
            try db.cachedStatement(
                sql: """
                    INSERT INTO retry
                        (deliveryID, container, position, "offset", subscriptionSerial,
                        deviceSerial, attempts, dueAt, decidedAt, reason, body, owner, lane,
                        collapses)
                    SELECT deliveryID, container, position, "offset", subscriptionSerial,
                        deviceSerial, 0, ?, ?, reason, body, owner,
                        json_extract(body, '$.gatewayEnvironment') || ' '
                            || json_extract(body, '$.topic'),
                        json_type(body, '$.collapsing') IS NOT NULL
                    FROM deadLetter WHERE container = ? AND deliveryID = ?
                    ON CONFLICT DO UPDATE SET attempts = 0, dueAt = excluded.dueAt,
                        decidedAt = excluded.decidedAt
                    """
            ).execute(arguments: [now.stored, now.stored, container.id, id])
        }
        let left = try await count(ids, of: container, reason, expired)
        return Redriving(redriven: redriven, expired: left)
    }

    private func count(
        _ ids: [DeliveryID]?, of key: ContainerKey, _ reason: String?, _ condition: String
    ) async throws -> Int {
        let found = try await rows(
            of: key,
            sql: """
                SELECT deliveryID FROM deadLetter
                WHERE container = ?1 AND (?2 IS NULL OR reason = ?2) AND \(condition)
                """, arguments: [reason]
        ) { $0["deliveryID"] as Data }
        guard let ids else { return found.count }
        let wanted = Set(ids.map(\.stored))
        return found.count { wanted.contains($0) }
    }

    package func waiting(among ids: [DeliveryID]) async throws -> Set<DeliveryID> {
        guard !ids.isEmpty else { return [] }
        return try await read { db in
            let find = try db.cachedStatement(sql: "SELECT 1 FROM retry WHERE deliveryID = ?")
            return Set(
                try ids.filter { try Int.fetchOne(find, arguments: [$0.stored]) != nil })
        }
    }

    package func exception(_ id: DeliveryID) async throws -> DeliveryException? {
        try await read { [unreadable] db in
            let retry = try Row.fetchOne(
                db, sql: "SELECT * FROM retry WHERE deliveryID = ?", arguments: [id.stored])
            if let retry {
                return try unreadable.value(of: retry, in: "retry") { .retry(try Retry(row: $0)) }
            }
            let letter = try Row.fetchOne(
                db, sql: "SELECT * FROM deadLetter WHERE deliveryID = ?", arguments: [id.stored])
            return try letter.flatMap {
                try unreadable.value(of: $0, in: "deadLetter") {
                    .deadLetter(try DeadLetter(row: $0))
                }
            }
        }
    }
}
