import Foundation
package import RelayModel

/// Every form in which values were ever stored, which all later versions must read.
///
/// Each line of `Golden/storedForms.txt` is a name, a tab, and the text. A line is never changed.
/// When a form changes, the new form gets a line of its own, and the old one must still be
/// readable.
package enum GoldenForms {
    /// Reads the stored texts by their names.
    package static func texts() throws -> [String: String] {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "Golden/storedForms.txt")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        return Dictionary(
            uniqueKeysWithValues: lines.map { line in
                let parts = line.split(separator: "\t", maxSplits: 1)
                return (String(parts[0]), String(parts[1]))
            })
    }

    private static var otherZone: ZoneID {
        guard let zone = ZoneID(zoneName: "zone") else { preconditionFailure("no zone's name") }
        return zone
    }

    /// The changes of the file by name.
    package static var changes: [String: RecordChange] {
        var plain = Sample.change("a", .create)
        plain.after = RecordImage(["artist": .string("Ann \"A\""), "year": .integer(1907)])
        var whole = RecordChange(
            .update, of: Sample.identifier("Artwork"),
            RecordID(
                recordName: Sample.identifier("b"), zoneID: otherZone))
        whole.database = .private
        whole.owner = Sample.identifier("ann")
        whole.before = RecordImage(["size": .double(0.5)], completeness: .partial)
        whole.after = RecordImage([
            "at": .timestamp(Timestamp(seconds: 5, nanoseconds: 7)),
            "tags": .list([.string("x"), .null]),
        ])
        whole.changedKeys = ["size", "tags"]
        whole.origin = ChangeOrigin(
            deviceID: Sample.identifier("phone"), userID: Sample.identifier("ann"))
        whole.readers = ["ann", "bob"]
        whole.readersBefore = ["ann"]
        whole.created = RecordTrace(at: Sample.moment(1), userID: Sample.identifier("ann"))
        whole.formerlyModified = RecordTrace(at: Sample.moment(2), userID: nil)
        whole.occurredAt = Sample.moment(3)
        whole.version = 9
        whole.isSnapshot = true
        let deletion = RecordChange(
            .delete, of: Sample.identifier("Artwork"),
            RecordID(recordName: Sample.identifier("c")))
        // The source told another state than the relay keeps.
        var differing = Sample.change("d", .update)
        differing.after = RecordImage(["size": .integer(2)])
        differing.kept = KeptState(
            image: RecordImage(["size": .integer(1)], completeness: .partial), readers: ["ann"])
        differing.isUnkept = true
        return [
            "change.create": plain, "change.update": whole, "change.delete": deletion,
            "change.kept": differing,
        ]
    }

    /// The subscriptions of the file by name, all of one owner.
    package static var subscriptions: [String: Subscription] {
        let owner = Sample.owner("ann")
        let arguments = Sample.subscription("with-arguments", artist: "artist-1", of: owner)
        var text = Sample.subscription("plain \"text\"", artist: "x", of: owner, once: true)
        text.scope = .query(
            SubscriptionQuery(
                recordType: Sample.identifier("Artwork"), form: .predicate,
                source: .string("title == \"x\""), canonical: "title == \"x\""), zoneID: nil)
        var zone = Sample.subscription("zone", artist: "x", of: owner)
        zone.scope = .zone(otherZone, recordType: nil)
        zone.firesOn = .all
        return [
            "subscription.arguments": arguments, "subscription.text": text,
            "subscription.zone": zone,
        ]
    }
}
