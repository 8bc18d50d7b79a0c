import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// The warnings on saving a subscription: about what the relay has seen, and nothing that it cannot
/// know.
@Suite struct SubscriptionWarningTests {
    private static let sources = "containers/iCloud.com.example.Art/development/sources"
    private static let posted = "/changes/1/iCloud.com.example.Art/development/open"

    /// Runs `body` with a relay whose records of type `Todo` have `title`, `priority` and `done`.
    private static func with(
        _ changes: [String], _ body: @escaping @Sendable (TestRelay) async throws -> Void
    ) async throws {
        try await TestRelay.with { relay in
            _ = try await relay.admin(
                .put, sources + "/open", #"{"preset":"belfry","verification":{"scheme":"none"}}"#)
            for change in changes {
                let answer = try await relay.call(.post, posted, body: change)
                #expect(answer.status == 200, "\(answer.text)")
            }
            // The sample of the log is cached for a moment.
            relay.dependencies.seen.forget()
            try await body(relay)
        }
    }

    private static let todos = [
        #"{"operation":"create","recordType":"Todo","recordName":"t-1","#
            + #""after":{"title":"Tea","priority":2,"done":false}}"#,
        #"{"operation":"update","recordType":"Todo","recordName":"t-1","#
            + #""after":{"title":"Tea","priority":3,"done":true}}"#,
    ]

    /// An update that has the whole record as it was before.
    private static let wholeUpdate =
        #"{"operation":"update","recordType":"Todo","recordName":"t-1","#
        + #""before":{"priority":3},"after":{"title":"Tea","priority":1,"done":true}}"#

    /// Returns the warnings about a saved condition: their kinds, reasons and hints.
    private func warnings(
        _ relay: TestRelay, _ condition: String, on type: String = "Todo",
        more: String = "", info: String = #"{"shouldBadge":true}"#
    ) async throws -> [[String]] {
        let query = #"{"recordType":"\#(type)","predicate":\#(JSONValue.string(condition).text)}"#
        let answer = try await relay.call(
            .post, TestRelay.path + "/public/subscriptions/modify" + TestRelay.query(),
            body: #"{"operations":[{"operationType":"create","subscription":{"query":\#(query),"#
                + #""subscriptionType":"query","firesOn":["create","update"]\#(more),"#
                + #""notificationInfo":\#(info)}}]}"#)
        let entry = answer.json.value(at: ["subscriptions", "0"])
        #expect(entry?.value(at: ["activationPosition"]) != nil, "\(answer.text)")
        guard case .array(let warnings)? = entry?.value(at: ["warnings"]) else { return [] }
        return warnings.map { warning in
            ["warning", "reason", "hint"].compactMap { name in
                if case .string(let text)? = warning.value(at: [name]) { text } else { nil }
            }
        }
    }

    @Test func `names that a user could not have read are not revealed`() async throws {
        let hidden = [
            #"{"operation":"create","recordType":"Payroll","recordName":"p-1","#
                + #""readers":["somebody-else"],"after":{"salary":2}}"#,
            #"{"operation":"create","recordType":"Todo","recordName":"t-9","#
                + #""readers":["somebody-else"],"after":{"verdict":2}}"#,
        ]
        try await Self.with(Self.todos + hidden) { relay in
            let all =
                try await warnings(relay, "salary > 1", on: "Payrol")
                + warnings(relay, "verdictt > 1")
            #expect(!all.isEmpty)
            let text = all.flatMap(\.self).joined(separator: "\n")
            #expect(!text.contains("Payroll?") && !text.contains("verdict?"), "\(text)")
        }
    }

    @Test func `a shown field that no record had causes a warning`() async throws {
        try await Self.with(Self.todos) { relay in
            let info =
                #"{"titleLocalizationKey":"T","titleLocalizationArgs":["title","titel"],"#
                + #""alertBody":"New","desiredKeys":["done","nosuch"]}"#
            let digest = #","digest":{"seconds":60,"alertBody":"{count}, the newest {priorty}"}"#
            let told = try await warnings(relay, "priority > 2", more: digest, info: info)
            let none = "no known record of type Todo had a field"
            #expect(
                told == [
                    [
                        "unknownField", "notificationInfo.titleLocalizationArgs: \(none) titel",
                        "did you mean title?",
                    ],
                    ["unknownField", "notificationInfo.desiredKeys: \(none) nosuch"],
                    [
                        "unknownField", "digest.alertBody: \(none) priorty",
                        "did you mean priority?",
                    ],
                ])
            let right = info.replacing(#","titel""#, with: "").replacing(#","nosuch""#, with: "")
            #expect(try await warnings(relay, "priority > 3", info: right) == [])
        }
    }

    @Test func `of very large changes, only the newest are looked at`() async throws {
        let fields = (0..<1000).map { #""field\#($0)":1"# }.joined(separator: ",")
        let wide = (0..<30).map {
            #"{"operation":"create","recordType":"Wide","recordName":"w\#($0)","#
                + #""after":{\#(fields)}}"#
        }
        try await Self.with(Self.todos + wide) { relay in
            let told = try await warnings(relay, "title == 'Tea'", on: "Tood")
            let reason =
                "the schema has no record type Tood, and none of the last 20 changes had it"
            #expect(told == [["unknownRecordType", reason]])
        }
    }

    @Test func `very many unknown names are not all compared with all known ones`() async throws {
        // A record type has a thousand fields, and one subscription dozens of unknown names.
        let fields = (0..<1000).map { #""field\#($0)abcdefgh":1"# }.joined(separator: ",")
        let wide =
            #"{"operation":"create","recordType":"Wide","recordName":"w","after":{\#(fields)}}"#
        try await Self.with([wide]) { relay in
            func operation(_ number: Int) -> String {
                let names = (0..<32).map { #""field\#(number)x\#($0)bcdefgh""# }
                    .joined(separator: ",")
                return #"{"operationType":"create","subscription":{"subscriptionType":"query","#
                    + #""query":{"recordType":"Wide","predicate":"field1abcdefgh == \#(number)"},"#
                    + #""firesOn":["create"],"notificationInfo":{"alertBody":"New","#
                    + #""desiredKeys":[\#(names)]}}}"#
            }
            let answer = try await relay.call(
                .post, TestRelay.path + "/public/subscriptions/modify" + TestRelay.query(),
                body: #"{"operations":[\#((1...20).map(operation).joined(separator: ","))]}"#)
            #expect(answer.status == 200, "\(answer.text)")
            let hints = (0..<20).flatMap { number -> [Bool] in
                let place = ["subscriptions", "\(number)", "warnings"]
                guard case .array(let told)? = answer.json.value(at: place) else { return [] }
                return told.map { $0.value(at: ["hint"]) != nil }
            }
            // Each subscription has 20 warnings; those of the first two have suggestions.
            #expect(hints.count == 400)
            #expect(hints.prefix(40).allSatisfy { $0 })
            #expect(!hints.dropFirst(40).contains(true))
        }
    }

    @Test func `a field whose change is awaited and that no record had is told`() async throws {
        try await Self.with(Self.todos + [Self.wholeUpdate]) { relay in
            let told = try await warnings(
                relay, "priority > 2", more: #","changedKeys":["priorty","title"]"#)
            #expect(
                told == [
                    [
                        "unknownField",
                        "changedKeys: no known record of type Todo had a field priorty",
                        "did you mean priority?",
                    ]
                ])
        }
    }

    @Test func `updates that do not show whether they changed a field are told`() async throws {
        let changed = #","changedKeys":["title"]"#
        try await Self.with(Self.todos) { relay in
            let told = try await warnings(relay, "priority > 2", more: changed)
            #expect(
                told.map { $0.prefix(2) } == [
                    [
                        "noBeforeImage",
                        "changedKeys lets no update fire: the last update of type Todo came "
                            + "without the record as it was before, and without a list of the "
                            + "fields that changed",
                    ]
                ])
        }
        let listed =
            #"{"operation":"update","recordType":"Todo","recordName":"t-1","#
            + #""after":{"title":"Tea","priority":1,"done":true},"changedKeys":["priority"]}"#
        for update in [Self.wholeUpdate, listed] {
            try await Self.with(Self.todos + [update]) { relay in
                let told = try await warnings(relay, "priority > 2", more: changed)
                #expect(told == [])
            }
        }
    }

    @Test func `a condition that the moment of a change is another one is told`() async throws {
        try await Self.with(Self.todos) { relay in
            let never = [
                "modificationDate < now()", "now() != ___modTime",
                "priority > 2 AND modificationDate > now()",
            ]
            for condition in never {
                let told = try await warnings(relay, condition)
                #expect(told.map { $0.first } == ["neverTrue"], "\(condition)")
            }
            let perhaps = [
                "modificationDate >= now()", "creationDate < now()",
                "priority > 2 OR modificationDate < now()", "NOT (modificationDate < now())",
            ]
            for condition in perhaps {
                #expect(try await warnings(relay, condition) == [], "\(condition)")
            }
        }
    }

    @Test func `an unseen name causes a warning with the likely one`() async throws {
        try await Self.with(Self.todos) { relay in
            var told = try await warnings(relay, "priorty > 2")
            #expect(
                told == [
                    [
                        "unknownField", "no known record of type Todo had a field priorty",
                        "did you mean priority?",
                    ]
                ])
            told = try await warnings(relay, "title == Coffee")
            #expect(
                told == [
                    [
                        "unknownField", "no known record of type Todo had a field Coffee",
                        "a word without quotes is a field name; write a text as \"Coffee\"",
                    ]
                ])
            told = try await warnings(relay, "priority == '3'")
            #expect(
                told == [
                    [
                        "otherKind",
                        "judging by the values received so far: a number and a text cannot be "
                            + "compared, in priority == \"3\"",
                        "write a number without quotes: 3",
                    ]
                ])
            told = try await warnings(relay, "title == 'Tea'", on: "Tood")
            #expect(
                told == [
                    [
                        "unknownRecordType",
                        "the schema has no record type Tood, and none of the last 2 changes had "
                            + "it", "did you mean Todo?",
                    ]
                ])
            told = try await warnings(relay, "title LIKE 'T%' AND priority < 1 AND priority > 1")
            #expect(told.map(\.first) == ["foreignWildcard", "neverTrue"])
        }
    }

    @Test(arguments: [
        "priority > 2.5 AND title == 'Tea'", "done == YES", "title == NULL",
        "creationDate > CAST(1, 'NSDate') AND recordName == 'x'", "title CONTAINS[c] 'x'",
        "priority IN {1, 2}",
    ])
    func `a condition on what was seen causes no warning`(condition: String) async throws {
        try await Self.with(Self.todos) { relay in
            let told = try await warnings(relay, condition)
            #expect(told == [])
        }
    }

    @Test func `without known records there is no warning`() async throws {
        try await Self.with([]) { relay in
            let told = try await warnings(relay, "anything == whatever", on: "Todo")
            #expect(told == [])
        }
        // The fields that a partial image lacks are unknown, and a field that has had values of two
        // kinds may have either.
        let partial =
            #"{"operation":"update","recordType":"Art","recordName":"a","#
            + #""after":{"x":1},"afterCompleteness":"partial"}"#
        let text =
            #"{"operation":"create","recordType":"Todo","recordName":"t-2","#
            + #""after":{"title":"Tea","priority":"high","done":false}}"#
        try await Self.with(Self.todos + [partial, text]) { relay in
            let told = try await warnings(relay, "priority == 'high' OR priority > 2")
            #expect(told == [])
        }
    }

    @Test func `without changes of a kind there is no warning about it`() async throws {
        try await Self.with([]) { relay in
            let schema = try await relay.admin(
                .put, "containers/iCloud.com.example.Art/development/schema",
                #"{"recordTypes":[{"name":"Todo","fields":["#
                    + #"{"name":"title","type":"STRING","queryable":true}]}]}"#)
            #expect(schema.status == 200, "\(schema.text)")
            let told = try await warnings(relay, "title == 'Tea'", on: "Tood")
            let reason = "the schema has no record type Tood"
            #expect(told == [["unknownRecordType", reason, "did you mean Todo?"]])
        }
    }

    @Test func `values of another type than declared cause a warning`() async throws {
        let todo =
            #"{"operation":"create","recordType":"Todo","recordName":"t-1","#
            + #""after":{"due":"2026-01-01T00:00:00Z","place":{"latitude":1,"longitude":2}}}"#
        try await Self.with([todo]) { relay in
            let schema = try await relay.admin(
                .put, "containers/iCloud.com.example.Art/development/schema",
                #"{"recordTypes":[{"name":"Todo","fields":["#
                    + #"{"name":"due","type":"TIMESTAMP","queryable":true},"#
                    + #"{"name":"place","type":"LOCATION","queryable":true}]}]}"#)
            #expect(schema.status == 200, "\(schema.text)")
            let came = "judging by the values received so far: "
            var told = try await warnings(relay, "due < now()")
            let kinds = "a text and a date cannot be compared, in due < now()"
            #expect(told.map(\.[1]) == [came + kinds])
            told = try await warnings(
                relay,
                "distanceToLocation:fromLocation:(place, place) < 100 AND due != nil")
            #expect(
                told.map(\.[1]) == [
                    came + "distanceToLocation:fromLocation: is not defined for a dictionary, in "
                        + "distanceToLocation:fromLocation:(place, place) < 100"
                ])
        }
    }

    @Test func `a former image that never comes causes a warning`() async throws {
        try await Self.with(Self.todos) { relay in
            let told = try await warnings(
                relay, "priority > 2", more: #","firesWhen":"entered""#)
            #expect(told.map(\.first) == ["noBeforeImage"])
            #expect(
                told.first?[1]
                    == "firesWhen \"entered\" does not fire: the last update of type Todo came "
                    + "without the record as it was before")
        }
        try await Self.with(Self.todos + [Self.wholeUpdate]) { relay in
            let told = try await warnings(
                relay, "priority > 2", more: #","firesWhen":"entered""#)
            #expect(told == [])
        }
        try await Self.with([]) { relay in
            _ = try await relay.admin(
                .put, Self.sources + "/cms",
                #"{"preset":"directus","mapping":{"recordTypes":{"todos":"Todo"}}}"#)
            let told = try await warnings(
                relay, "priority > 2", more: #","firesWhen":"left""#)
            #expect(told.map(\.first) == ["noBeforeImage"])
            let kept = try await relay.admin(
                .post,
                "containers/iCloud.com.example.Art/development/schema/recordTypes/Todo",
                #"{"shadow":true}"#)
            #expect(kept.status == 200, "\(kept.text)")
            let silent = try await warnings(
                relay, "priority > 3", more: #","firesWhen":"left""#)
            #expect(!silent.contains { $0.first == "noBeforeImage" })
        }
    }

    @Test func `a container's only source says what will never come, before it posts anything`()
        async throws
    {
        try await TestRelay.with { relay in
            let entered = #","firesWhen":"entered""#
            _ = try await relay.admin(.put, Self.sources + "/cms", #"{"preset":"strapi"}"#)
            let told = try await warnings(relay, "priority > 2", more: entered)
            #expect(
                told.map { $0.prefix(2) } == [
                    [
                        "noBeforeImage",
                        "firesWhen \"entered\" does not fire: the source of the records sends "
                            + "updates of type Todo without the record as it was before (strapi "
                            + "never sends it)",
                    ]
                ])
            // With two sources it is unknown which of them will post records of the type.
            _ = try await relay.admin(.put, Self.sources + "/shop", #"{"preset":"supabase"}"#)
            #expect(try await warnings(relay, "priority > 3", more: entered) == [])
        }
    }

    @Test func `a condition can be checked without being saved`() async throws {
        try await Self.with(Self.todos) { relay in
            let place = "containers/iCloud.com.example.Art/development/subscriptions"
            let answer = try await relay.admin(
                .post, place + "/check",
                #"{"query":{"recordType":"Todo","predicate":"priorty>2 AND a==%@","#
                    + #""predicateArguments":[3]},"firesWhen":"entered"}"#)
            #expect(answer.status == 200, "\(answer.text)")
            #expect(answer["canonical"] == "priorty > 2 AND a == 3")
            guard case .array(let warnings)? = answer["warnings"] else { return }
            #expect(
                warnings.map { $0.value(at: ["warning"]) }
                    == ["unknownField", "unknownField", "noBeforeImage"])
            #expect(warnings.first?.value(at: ["offset"]) == 0)
            #expect(warnings.first?.value(at: ["length"]) == 7)
            let refused = try await relay.admin(
                .post, place + "/check", #"{"query":{"recordType":"Todo","predicate":"a =="}}"#)
            #expect(refused.status == 400)
            // The body is the subscription itself, so its members are named without a prefix.
            let said = "query.predicate at byte 4: a value is missing; expected a field, "
            #expect(refused.text.contains("\"reason\":\"\(said)"), "\(refused.text)")
            for (more, said) in [
                (#"{"recordType":"_Todo"},"firesOn":["create"]"#, "the record type "),
                (#"{"recordType":"Todo"},"changedKeys":["recordName"]"#, "changedKeys[0]: "),
            ] {
                let refused = try await relay.admin(
                    .post, place + "/check", #"{"query":\#(more)}"#)
                #expect(refused.text.contains("\"reason\":\"\(said)"), "\(refused.text)")
            }
            let saved = try await relay.admin(.get, place)
            #expect(saved["subscriptions"] == [])
        }
    }
}
