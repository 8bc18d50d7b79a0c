import PredicateLanguage
import RelayModel
import Testing

@Suite("Realm's published queries", .enabled(if: DialectCorpora.folder != nil, DialectCorpora.hint))
struct RealmCorpusTests {
    @Test func `every valid query is read`() throws {
        for test in try DialectCorpora.cases("rql_valid.jsonl") {
            do {
                _ = try RealmQuery(parsing: test.text("query"))
            } catch {
                let isRefusedAsValue = test.text("note").contains("rejected as a value")
                #expect(isRefusedAsValue && error.stage == .check, "\(test.testDescription)")
            }
        }
    }

    @Test func `every invalid query is refused at a place inside it`() throws {
        for test in try DialectCorpora.cases("rql_invalid.jsonl") {
            let query = test.text("query")
            do {
                let read = try RealmQuery(parsing: query)
                Issue.record("\(test.testDescription) was read as \(read)")
            } catch {
                #expect(error.offset + error.length <= query.utf8.count)
                #expect(!error.reason.isEmpty)
            }
        }
    }

    @Test func `every evaluated query finds what Realm finds`() throws {
        let tables = try RealmTables()
        var exceptions = 0
        for test in try DialectCorpora.cases("rql_eval_cases.jsonl") {
            if test.object["quirk"] != nil {
                exceptions += 1
                continue
            }
            try check(test, tables)
        }
        #expect(exceptions == 5)
    }

    private func check(_ test: DialectCorpora.Case, _ tables: RealmTables) throws {
        let records = try #require(tables.records[test.text("dataset")])
        let answer = Result { try tables.answer(test.text("query"), try test.arguments, records) }
        switch (answer, test.object["expect_count"]) {
        case (.success(let found), let count?):
            #expect(JSONValue.integer(Int64(found.count)) == count, "\(test.testDescription)")
            if case .array(let names)? = test.object["expect_order"] {
                let order = found.map { records[$0]["name"] }
                #expect(order == names.map { try? FieldValue(notation: $0) })
            }
            if case .array(let names)? = test.object["expect_ids"] {
                let ids = found.map { records[$0]["id"] ?? records[$0]["customer_id"] }
                #expect(
                    ids == names.map { try? FieldValue(notation: $0) }, "\(test.testDescription)")
            }
        case (.success(let found), nil):
            Issue.record("\(test.testDescription) found \(found)")
        case (.failure(let error), let count):
            #expect(count == nil, "\(test.testDescription): \(error)")
        }
    }
}

/// The tables of `rql_eval_datasets.json`.
struct RealmTables {
    var records: [String: [RecordFields]] = [:]

    init() throws {
        guard case .object(let tables) = try DialectCorpora.document("rql_eval_datasets.json")
        else {
            return
        }
        for (name, table) in tables.members {
            guard case .object(let table) = table, case .array(let rows)? = table["records"] else {
                continue
            }
            records[name] = try rows.map { row in
                guard case .map(let fields) = try FieldValue(notation: row) else { return [:] }
                return fields
            }
        }
    }

    func answer(
        _ text: String, _ arguments: [FieldValue], _ records: [RecordFields]
    ) throws -> [Int] {
        let query = try RealmQuery(parsing: text, arguments: arguments)
        try query.check(against: RecordSchema(inferredFrom: records))
        return try query.results(in: records)
    }
}
