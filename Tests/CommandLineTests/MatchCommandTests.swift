import Foundation
import RelayModel
import Testing

/// `belfry match`: files of subscriptions and changes go in, the matches come out.
@Suite struct MatchCommandTests {
    /// The same condition in each form, and one that is never fulfilled.
    private static let subscriptions = #"""
        {"id":1,"recordType":"Art","predicate":"artist == %@ AND price < 10","args":["ada"]}
        {"id":2,"recordType":"Art","predicate":"artist == 'bob'"}
        {"id":3,"recordType":"Art","rql":"artist == $0 AND price < 10","args":["ada"]}
        {"id":4,"recordType":"Art","rql":"artist == 'bob'"}
        {"id":5,"recordType":"Art","where":{"artist":{"$eq":"ada"},"price":{"$lt":10}}}
        {"id":6,"recordType":"Art","where":{"artist":{"$eq":"bob"}}}
        {"id":7,"recordType":"Art","filterBy":[{"comparator":"EQUALS","fieldName":"artist","fieldValue":{"value":"ada"}}]}
        {"id":8,"recordType":"Art","filterBy":[{"comparator":"EQUALS","fieldName":"artist","fieldValue":{"value":"bob"}}]}
        {"id":"refused","recordType":"Art","rql":"artist =="}
        {"id":"two","recordType":"Art","rql":"a == 1","where":{"a":{"$eq":1}}}
        {"id":"sql","recordType":"Art","predicate":"artist IS NOT NULL"}
        {"id":"star","recordType":"Art","predicate":"artist MATCHES %@","args":["*a"]}
        """#

    private static let changes = #"""
        {"id":"one","recordType":"Art","operation":"create","after":{"artist":"ada","price":9.5}}
        {"id":"list","recordType":"Art","operation":"create","after":{"artist":["ada"],"price":[90,9]}}
        {"id":"other","recordType":"Art","operation":"delete","before":{"artist":"bob"}}
        """#

    @Test(arguments: ["index", "reference"])
    func `every form of a condition is matched`(engine: String) async throws {
        let folder = try Folder.make()
        let paths = ["s.jsonl", "c.jsonl", "out.jsonl"].map { folder.appending(path: $0).path }
        try Data(Self.subscriptions.utf8).write(to: URL(filePath: paths[0]))
        try Data(Self.changes.utf8).write(to: URL(filePath: paths[1]))
        let ending = try await BuiltBelfry.run([
            "match", "--subscriptions", paths[0], "--changes", paths[1], "--matches", paths[2],
            "--engine", engine,
        ])
        // Refused subscriptions are not matched, and the exit code says that there were some.
        #expect(ending.code == 1, "\(ending.complaint)")
        #expect(ending.complaint.contains("s.jsonl:9: "))
        #expect(ending.complaint.contains("s.jsonl:10: "))
        #expect(
            ending.complaint.contains(
                "an expression alone is not a predicate; to find records that have a value, "
                    + "write != NULL")
        )
        #expect(ending.complaint.contains("s.jsonl:12: "))
        #expect(ending.complaint.contains("the pattern is refused"), "\(ending.complaint)")
        let report = try JSONValue(parsing: ending.output)
        guard case .object(let object) = report else {
            Issue.record("no report: \(ending.output)")
            return
        }
        #expect(object["subscriptions"] == 8)
        #expect(object["refused"] == 4)
        #expect(object["matches"] == 10)
        let lines = try String(contentsOfFile: paths[2], encoding: .utf8)
        // Only Realm and Minapp read a list without a quantifier as ANY.
        let expected = #"""
            {"id":"one","matches":[1,3,5,7]}
            {"id":"list","matches":[3,5]}
            {"id":"other","matches":[2,4,6,8]}

            """#
        #expect(lines == expected)
    }

    /// Conditions are read as the relay reads saved ones.
    ///
    /// Records and users may be given as texts, and a search of all texts has its other spellings.
    @Test(arguments: ["index", "reference"])
    func `a condition has the same meaning as when it is saved`(engine: String) async throws {
        let folder = try Folder.make()
        let paths = ["s.jsonl", "c.jsonl", "out.jsonl"].map { folder.appending(path: $0).path }
        let subscriptions = #"""
            {"id":1,"recordType":"Art","predicate":"allTokens TOKENMATCHES[cdl] 'bob smith'"}
            {"id":2,"recordType":"Art","predicate":"recordID == 'r1'"}
            {"id":3,"recordType":"Art","predicate":"SELF CONTAINS 'eve'"}
            """#
        let changes = #"""
            {"id":1,"recordType":"Art","recordName":"r1","operation":"create","after":{"a":"Bob"}}
            {"id":2,"recordType":"Art","recordName":"r2","operation":"create","after":{"a":"Eve"}}
            """#
        try Data(subscriptions.utf8).write(to: URL(filePath: paths[0]))
        try Data(changes.utf8).write(to: URL(filePath: paths[1]))
        let ending = try await BuiltBelfry.run([
            "match", "--subscriptions", paths[0], "--changes", paths[1], "--matches", paths[2],
            "--engine", engine,
        ])
        #expect(ending.code == 0, "\(ending.complaint)")
        let lines = try String(contentsOfFile: paths[2], encoding: .utf8)
        #expect(lines == "{\"id\":1,\"matches\":[1,2]}\n{\"id\":2,\"matches\":[3]}\n")
    }

    @Test func `missing files and folders are reported`() async throws {
        let folder = try Folder.make().path
        let none = folder + "/none"
        for (arguments, words) in [
            (["match", "--subscriptions", none, "--changes", none], "there is no file \(none)"),
            (
                ["match", "--subscriptions", folder, "--changes", folder],
                "the file \(folder) cannot be read: it is a folder"
            ),
            (
                ["gateway", "--port", "0", "--ca-file", none, "--script", folder],
                "the file \(folder) cannot be read: it is a folder"
            ),
        ] {
            let ending = try await BuiltBelfry.run(arguments)
            #expect(ending.code == 66)
            #expect(ending.complaint == "error: \(words)\n")
        }
        let key = try await BuiltBelfry.run([
            "gateway", "--port", "0", "--ca-file", none, "--key", "KEY:TEAM:\(none)",
        ])
        #expect(key.code == 64)
        #expect(key.complaint.contains("there is no file \(none)"), "\(key.complaint)")
        let text = folder + "/text.p8"
        try Data("no key\n".utf8).write(to: URL(filePath: text))
        let wrong = try await BuiltBelfry.run([
            "gateway", "--port", "0", "--ca-file", none, "--key", "KEY:TEAM:\(text)",
        ])
        #expect(wrong.code == 64)
        #expect(
            wrong.complaint.contains("the file \(text) contains no P-256 key in PEM form"),
            "\(wrong.complaint)")
    }

    @Test func `many refused lines are counted and only the first are shown`() async throws {
        let folder = try Folder.make()
        let paths = ["s.jsonl", "c.jsonl"].map { folder.appending(path: $0).path }
        let refused = (0..<500).map { #"{"id":\#($0),"recordType":"Art","rql":"a =="}"# }
        let nameless = #"{"recordType":"Art"}"# + "\n"
        try Data((nameless + refused.joined(separator: "\n")).utf8)
            .write(to: URL(filePath: paths[0]))
        try Data(Self.changes.utf8).write(to: URL(filePath: paths[1]))
        let ending = try await BuiltBelfry.run([
            "match", "--subscriptions", paths[0], "--changes", paths[1],
        ])
        #expect(ending.code == 1)
        #expect(try ending.member("refused") == 501)
        // Each line's place is reported once.
        #expect(
            ending.complaint.hasPrefix(
                "\(paths[0]):1: id: an integer or a string is expected\n"),
            "\(ending.complaint)")
        #expect(ending.complaint.contains("s.jsonl:20: "))
        #expect(!ending.complaint.contains("s.jsonl:21: "))
        #expect(ending.complaint.hasSuffix("s.jsonl: 481 more subscriptions are refused\n"))
    }
}
