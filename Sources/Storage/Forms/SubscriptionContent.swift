import Crypto
import FoundationEssentials
package import RelayModel

/// The content by which two subscriptions of one user in one database are duplicates.
///
/// CloudKit refuses a second subscription with the same type, record type, condition, kinds of
/// change and zone, whatever its notification info.
package struct SubscriptionContent {
    /// The SHA-256 over the parts, each preceded by its length.
    package let digest: [UInt8]

    /// Digests the content of `subscription`.
    package init(_ subscription: Subscription) {
        var hash = SHA256()
        for part in Self.parts(of: subscription) {
            let bytes = Data((part ?? "").utf8)
            // An absent part differs from an empty one.
            let length = part == nil ? -1 : Int64(bytes.count)
            withUnsafeBytes(of: length.littleEndian) { hash.update(bufferPointer: $0) }
            hash.update(data: bytes)
        }
        digest = Array(hash.finalize())
    }

    private static func parts(of subscription: Subscription) -> [String?] {
        let type: String
        var canonical: String?
        switch subscription.scope {
        case .query(let query, _):
            type = "query"
            canonical = query.canonical
        case .zone: type = "zone"
        case .database: type = "database"
        }
        return [
            type, subscription.recordType?.rawValue, canonical,
            String(subscription.firesOn.rawValue), String(subscription.firesOnce),
            subscription.firesWhen.rawValue, subscription.zoneID?.zoneName,
            subscription.zoneID?.ownerRecordName?.rawValue,
        ] + Set(subscription.changedKeys).sorted()
    }
}
