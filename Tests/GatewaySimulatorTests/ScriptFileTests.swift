import Foundation
import GatewaySimulator
import Testing

@Suite struct ScriptFileTests {
    @Test func `a file states rules and devices`() throws {
        let file = try ScriptFile(
            json: Data(
                #"""
                {
                  "rules": [
                    {"for": {"device": "ABCD"}, "answers": [
                      {"do": "refuse", "status": 429, "reason": "TooManyRequests",
                       "retryAfter": 3, "times": 2},
                      {"do": "accept", "delayMilliseconds": [10, 50]}]},
                    {"for": "eachPush", "answers": [{"do": "silence", "times": 1}]},
                    {"for": "eachDevice", "answers": [
                      {"do": "resetStream", "code": "cancelled", "accounting": "notAccepted"},
                      {"do": "closeConnection", "end": "reset"},
                      {"do": "freezeConnection"},
                      {"do": "acceptLimitingStreams", "streams": 2}]},
                    {"answers": [
                      {"do": "goAway", "lastStream": "beforeThis", "ending": "close",
                       "code": "enhanceYourCalm", "reason": "TooMany"},
                      {"do": "raw", "status": 502, "body": "<p>"}]}
                  ],
                  "devices": {
                    "AA": {"standing": "registered", "topics": ["a.b"]},
                    "bb": {"standing": "unregistered", "since": 1700000000000},
                    "cc": {"standing": "expired", "since": 1700000000500},
                    "dd": {"standing": "otherEnvironment"}
                  }
                }
                """#.utf8))
        let tooMany = GatewayRefusal(status: 429, reason: "TooManyRequests", retryAfter: 3)
        let goAway = GoAway(
            lastStream: .beforeThis, ending: .close, errorCode: .enhanceYourCalm,
            reason: "TooMany")
        let rules = [
            ScriptRule(
                .device("abcd"),
                [
                    ScriptedAnswer(.refuse(tooMany), times: 2),
                    ScriptedAnswer(.accept, delay: .milliseconds(10) ... .milliseconds(50)),
                ]),
            ScriptRule(.eachPush, [ScriptedAnswer(.silence, times: 1)]),
            ScriptRule(
                .eachDevice,
                [
                    ScriptedAnswer(.resetStream(.cancelled), accounting: .notAccepted),
                    ScriptedAnswer(.closeConnection(.reset)), ScriptedAnswer(.freezeConnection),
                    ScriptedAnswer(.acceptLimitingStreams(to: 2)),
                ]),
            ScriptRule(
                .all,
                [
                    ScriptedAnswer(.goAway(goAway)),
                    ScriptedAnswer(.raw(status: 502, contentType: "text/html", body: "<p>")),
                ]),
        ]
        #expect(file.script == AnswerScript(rules))
        #expect(
            file.devices == [
                "aa": .registered(topics: ["a.b"]),
                "bb": .unregistered(since: Date(timeIntervalSince1970: 1_700_000_000)),
                "cc": .expired(since: Date(timeIntervalSince1970: 1_700_000_000.5)),
                "dd": .otherEnvironment,
            ])
    }

    @Test func `the manual's example is a script`() throws {
        let manual = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../docs/gateway-simulator.md")
        let text = try String(contentsOf: manual, encoding: .utf8)
        let blocks = text.components(separatedBy: "```json\n").dropFirst()
        let example = try #require(blocks.first?.components(separatedBy: "```").first)
        let file = try ScriptFile(json: Data(example.utf8))
        #expect(file.script.rules.map(\.scope) == [.device("aa11"), .eachPush, .all])
        #expect(file.devices.keys.sorted() == ["bb22", "cc33"])
    }

    static let faults: [(json: String, message: String)] = [
        (
            "{",
            " is not a JSON object: at byte 1, a member's name was expected"
        ),
        (
            "[]",
            " is not a JSON object: at byte 0, an object was expected"
        ),
        (
            #"{"rule": []}"#,
            "'s 'rule' is unknown here; known are rules, devices"
        ),
        (
            #"{"rules": {}}"#,
            "'s 'rules' must be a list"
        ),
        (
            #"{"rules": [1]}"#,
            "'s 'rules.0' must be an object"
        ),
        (
            #"{"rules": [{"for": "some"}]}"#,
            "'s 'rules.0.for' must be 'all', 'eachDevice', 'eachPush' or {\"device\": …}"
        ),
        (
            step(#"{"do": "sing"}"#),
            """
            's 'rules.0.answers.0.do' must be one of accept, refuse, raw, silence, resetStream, \
            goAway, closeConnection, freezeConnection, acceptLimitingStreams
            """
        ),
        (
            step("{}"),
            "'s 'rules.0.answers.0.do' is missing"
        ),
        (
            step(#"{"do": "refuse", "status": 200}"#),
            "'s 'rules.0.answers.0.status' must be a whole number from 400 to 599"
        ),
        (
            step(#"{"do": "refuse", "status": 503}"#),
            "'s 'rules.0.answers.0.reason' is missing"
        ),
        (
            step(#"{"do": "accept", "times": 0}"#),
            "'s 'rules.0.answers.0.times' must be a whole number from 1 to 9223372036854775807"
        ),
        (
            step(#"{"do": "accept", "delayMilliseconds": [5, 1]}"#),
            "'s 'rules.0.answers.0.delayMilliseconds' must begin with the smaller number"
        ),
        (
            step(#"{"do": "accept", "status": 200}"#),
            """
            's 'rules.0.answers.0.status' is unknown here; known are do, times, \
            delayMilliseconds, accounting
            """
        ),
        (
            #"{"devices": {"aa": {"standing": "dead"}}}"#,
            """
            's 'devices.aa.standing' must be one of registered, unregistered, expired, \
            otherEnvironment
            """
        ),
        (
            #"{"devices": {"aa": {"standing": "expired"}}}"#,
            "'s 'devices.aa.since' is missing"
        ),
    ]

    @Test(arguments: faults)
    func `a file that is not a script is refused with the place`(
        json: String, message: String
    ) throws {
        let fault = #expect(throws: ScriptFile.Fault.self) {
            try ScriptFile(json: Data(json.utf8))
        }
        #expect(fault?.description == "the script" + message)
    }

    static func step(_ step: String) -> String {
        #"{"rules": [{"answers": [\#(step)]}]}"#
    }
}

@Suite struct DescribeTests {
    @Test func `a push is printed whole, without its signature and control characters`() {
        let push = ReceivedPush(
            number: 3, connection: 2, stream: 5, receivedAt: Date(timeIntervalSince1970: 0),
            headers: [
                HeaderField(name: ":path", value: "/3/device/ab"),
                HeaderField(name: "authorization", value: "bearer aaa.bbb.ccc"),
                HeaderField(name: "apns-collapse-id", value: "a\u{1B}[31m"),
            ],
            deviceToken: "ab", payload: Array(#"{"aps":{"badge":1.50,"alert":""},"b":[]}"#.utf8),
            apnsID: TestPush.apnsID(1),
            answer: .refuse(GatewayRefusal(status: 400, reason: "BadTopic")),
            explanation: "the topic is odd", isAccepted: false, isAnswered: true)
        #expect(
            SimulatedGateway.describe(push) == """
                push 3 on connection 2, stream 5: 400 BadTopic
                  because: the topic is odd
                  :path: /3/device/ab
                  authorization: bearer aaa.bbb.…
                  apns-collapse-id: a\u{FFFD}[31m
                  (answered with apns-id: 00000000-0000-4000-8000-000000000001)
                  {
                    "aps": {
                      "badge": 1.50,
                      "alert": ""
                    },
                    "b": []
                  }
                """)
    }

    @Test func `each answer is described in a few words`() {
        let answers: [(GatewayAnswer, String)] = [
            (.accept, "200, accepted"),
            (.acceptLimitingStreams(to: 2), "200, accepted; stream limit now 2"),
            (.raw(status: 502, contentType: "a/b", body: "abc"), "502 with a body of 3 bytes"),
            (.silence, "never answered"),
            (.resetStream(.refused), "stream reset (refused)"),
            (.goAway(GoAway()), "GOAWAY (noError, last stream: highest, then: drain)"),
            (.closeConnection(.finish), "connection closed (finish)"),
            (.freezeConnection, "connection frozen"),
        ]
        for (answer, words) in answers { #expect(SimulatedGateway.describe(answer) == words) }
    }
}
