import Matching
import PredicateLanguage
import RelayModel
import Testing

/// A suite whose subscriptions all belong to ada and are about works of art.
protocol ArtworkSuite {}

extension ArtworkSuite {
    func subscription(
        _ serial: some BinaryInteger, _ predicate: RecordPredicate?
    ) throws -> IndexedSubscription {
        IndexedSubscription(
            serial: UInt64(serial), database: .public,
            owner: try #require(UserID(rawValue: "ada")),
            recordType: RecordType(rawValue: "Art"), predicate: predicate)
    }

    func subscription(
        _ serial: some BinaryInteger, _ format: String, _ arguments: [FieldValue] = []
    ) throws -> IndexedSubscription {
        try subscription(serial, RecordPredicate(format: format, arguments: arguments))
    }

    func change(
        _ fields: RecordFields, _ completeness: ImageCompleteness = .full
    ) throws -> RecordChange {
        let type = try #require(RecordType(rawValue: "Art"))
        let name = try #require(RecordName(rawValue: "r"))
        var change = RecordChange(.update, of: type, RecordID(recordName: name))
        change.after = RecordImage(fields, completeness: completeness)
        return change
    }
}
