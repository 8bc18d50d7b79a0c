import Foundation
import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Testing

/// The folder of the published suites, if the environment variable `BELFRY_CORPORA` names one.
enum Corpora {
    static let folder = ProcessInfo.processInfo.environment["BELFRY_CORPORA"]
}

/// All predicates of the published suites in one index, and all their records as changes.
@Suite(.enabled(if: Corpora.folder != nil, "BELFRY_CORPORA is not set"))
struct CorpusTests {
    private static func lines(_ name: String) throws -> [JSONObject] {
        let text = try String(
            contentsOfFile: try #require(Corpora.folder) + "/" + name, encoding: .utf8)
        return try text.split(separator: "\n").compactMap { line in
            guard case .object(let object) = try JSONValue(parsing: String(line)) else {
                return nil
            }
            return object
        }
    }

    /// Returns the predicates of the files that can be parsed in their dialects.
    private static func predicates() throws -> [RecordPredicate] {
        var found: [RecordPredicate] = []
        for line in try lines("nspredicate_cases.jsonl") + lines("ckquery_subset_cases.jsonl")
            + lines("parse_livequery_cases.jsonl")
        {
            guard case .string(let format)? = line["predicate"] ?? line["nspredicate"] else {
                continue
            }
            let arguments = (try? arguments(line)) ?? []
            if let one = try? RecordPredicate(format: format, arguments: arguments) {
                found.append(one)
            }
        }
        for line in try lines("rql_eval_cases.jsonl") {
            guard case .string(let query)? = line["query"], let arguments = try? arguments(line)
            else { continue }
            if let one = try? RecordPredicate(rql: query, arguments: arguments) {
                found.append(one)
            }
        }
        for line in try lines("minapp_where_cases.jsonl") {
            guard let json = line["where"] ?? line["expect"] else { continue }
            if let one = try? RecordPredicate(where: json) { found.append(one) }
        }
        return found
    }

    private static func arguments(_ line: JSONObject) throws -> [FieldValue] {
        guard case .array(let values)? = line["args"] else { return [] }
        return try values.map { try FieldValue(notation: $0) }
    }

    private static func records() throws -> [RecordFields] {
        var found: [RecordFields] = []
        for line in try lines("nspredicate_cases.jsonl") + lines("parse_livequery_cases.jsonl") {
            var values: [JSONValue] = [line["record"], line["nsrecord"]].compactMap { $0 }
            if case .array(let records)? = line["records"] { values += records }
            for case .object(let object) in values {
                if let fields = try? FieldValue.fields(notation: object) { found.append(fields) }
            }
        }
        let path = try #require(Corpora.folder) + "/rql_eval_datasets.json"
        let data = try Data(contentsOf: URL(filePath: path))
        collect(try JSONValue(parsing: Array(data)), depth: 4, into: &found)
        return Array(Set(found))
    }

    /// Collects every object in a document as a record, at any place in it.
    private static func collect(
        _ json: JSONValue, depth: Int, into found: inout [RecordFields]
    ) {
        if depth == 0 { return }
        switch json {
        case .object(let object):
            if let fields = try? FieldValue.fields(notation: object) { found.append(fields) }
            for member in object.members { collect(member.value, depth: depth - 1, into: &found) }
        case .array(let elements):
            for element in elements { collect(element, depth: depth - 1, into: &found) }
        default: return
        }
    }

    @Test func `every predicate on every record agrees with the reference evaluator`() throws {
        let type = try #require(RecordType(rawValue: "T"))
        let owner = try #require(UserID(rawValue: "ada"))
        let name = try #require(RecordName(rawValue: "r"))
        let index = SubscriptionIndex(seed: 21)
        let predicates = try Self.predicates()
        let prepared = predicates.map { try? PreparedPredicate($0) }
        for (serial, predicate) in predicates.enumerated() {
            index.insert(
                IndexedSubscription(
                    serial: UInt64(serial), database: .public, owner: owner, recordType: type,
                    predicate: predicate))
        }
        #expect(predicates.count > 1000)
        for fields in try Self.records() {
            var change = RecordChange(.update, of: type, RecordID(recordName: name))
            change.after = RecordImage(fields)
            let found = index.matches(for: change)
            let expected = prepared.indices.filter {
                prepared[$0]?.evaluate(on: fields) == .true
            }
            for serial in Set(found).symmetricDifference(expected.map(UInt64.init)).prefix(3) {
                Issue.record("\(predicates[Int(serial)].canonicalText) on \(fields)")
            }
        }
    }
}
