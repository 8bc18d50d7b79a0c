import RelayModel
import Storage

extension StoreReport {
    /// Returns the statement that counts the differences between `quotaUse` and the tables, in both
    /// directions.
    static func miscounted(_ dialect: Dialect) -> String {
        let bytes = dialect.bytes(of: "body")
        // Default zones are not counted, because no client creates them.
        let ofSomebody = "zoneName <> '\(ZoneID.defaultName)' OR zoneOwner <> ''"
        return """
                WITH found (container, thing, holder, number, bytes) AS (
                    SELECT container, 1, '', count(*), sum(\(bytes))
                    FROM subscription WHERE ended IS NULL GROUP BY container
                    UNION ALL
                    SELECT container, 1, CAST(owner AS TEXT), count(*), sum(\(bytes))
                    FROM subscription WHERE ended IS NULL GROUP BY container, owner
                    UNION ALL
                    SELECT container, 2, '', count(*), 0
                    FROM device WHERE ended IS NULL GROUP BY container
                    UNION ALL
                    SELECT container, 2, CAST(owner AS TEXT), count(*), 0
                    FROM device WHERE ended IS NULL GROUP BY container, owner
                    UNION ALL
                    SELECT container, 3, '', sum(1 - isDeleted), sum(bytes)
                    FROM recordHolding GROUP BY container
                    UNION ALL
                    SELECT container, 3, holder, sum(1 - isDeleted), sum(bytes)
                    FROM recordHolding WHERE holder <> '' GROUP BY container, holder
                    UNION ALL
                    SELECT container, 4, '', count(*), 0
                    FROM recordZone WHERE \(ofSomebody) GROUP BY container
                    UNION ALL
                    SELECT container, 4, database || '/' || owner, count(*), 0
                    FROM recordZone WHERE \(ofSomebody) GROUP BY container, database, owner),
                counted AS (
                    SELECT container, thing, holder, number, bytes FROM quotaUse
                    WHERE thing <> 5 AND (number <> 0 OR bytes <> 0))
                SELECT (SELECT count(*) FROM (
                        SELECT * FROM found EXCEPT SELECT * FROM counted) AS missing)
                    + (SELECT count(*) FROM (
                        SELECT * FROM counted EXCEPT SELECT * FROM found) AS surplus)
            """
    }
}
