import RelayModel
import RelayTestKit
import Testing

@testable import belfry

/// The pages of a `rehearse` answer, each about the changes after those of the page before, add up
/// to one answer.
@Suite struct RehearsalPagesTests {
    private static func page(
        _ changes: Int64, fired: Int64, from: String, to: String, end: String = "changes",
        before: String? = nil, hours: [(String, Int64)], adding members: JSONObject = [:]
    ) -> JSONValue {
        var places: JSONObject = [
            "changes": .integer(changes), "end": .string(end),
            "from": ["position": .string(from), "at": "T"],
            "to": ["position": .string(to), "at": "T"],
        ]
        places["before"] = before.map { .string($0) }
        var object: JSONObject = [
            "sentence": "s", "lookedAt": .object(places), "fired": .integer(fired),
            "pushes": .integer(fired * 2), "devices": 2,
            "byOperation": ["create": .integer(fired), "update": 0, "delete": 0],
            "byDay": [["day": "D", "fired": .integer(fired)]],
            "byHour": .array(
                hours.map { ["hour": .string($0.0), "fired": .integer($0.1)] }),
            "errors": ["count": 1],
            "nearMisses": ["count": 1, "among": 2, "examples": []],
            "examples": fired == 0 ? [] : [["position": .string(to)]],
        ]
        for member in members.members { object[member.name] = member.value }
        return .object(object)
    }

    @Test func `counts are added up and the hour shared by two pages is merged`() {
        var pages = RehearsalPages()
        pages.add(
            Self.page(3, fired: 2, from: "8", to: "10", before: "8", hours: [("h2", 1), ("h3", 1)]))
        #expect(pages.before == "8")
        let goesOn = pages.add(
            Self.page(
                4, fired: 3, from: "2", to: "7", end: "log", hours: [("h1", 2), ("h2", 1)]))
        #expect(goesOn)
        #expect(pages.before == nil)
        #expect(pages.lookedAt == 7)
        let answer = JSONValue.object(pages.answer)
        #expect(answer.value(at: ["fired"]) == 5)
        #expect(answer.value(at: ["pushes"]) == 10)
        #expect(answer.value(at: ["byOperation", "create"]) == 5)
        #expect(answer.value(at: ["byDay"]) == [["day": "D", "fired": 5]])
        #expect(
            answer.value(at: ["byHour"]) == [
                ["hour": "h1", "fired": 2], ["hour": "h2", "fired": 2], ["hour": "h3", "fired": 1],
            ])
        #expect(answer.value(at: ["errors", "count"]) == 2)
        #expect(answer.value(at: ["nearMisses", "among"]) == 4)
        #expect(answer.value(at: ["lookedAt", "from", "position"]) == "2")
        #expect(answer.value(at: ["lookedAt", "to", "position"]) == "10")
        #expect(answer.value(at: ["lookedAt", "end"]) == "log")
        #expect(answer.value(at: ["examples", "0", "position"]) == "10")
        #expect(
            answer.value(at: ["sentence"])
                == .string(
                    "Would have fired 5 times in 7 changes that it could watch, from position 2 (T) "
                        + "to 10 (T): 10 pushes to 2 devices."))
    }

    @Test func `a once subscription fires at the earliest match and is compared in one call`() {
        let once: JSONObject = ["once": ["position": "9", "at": "T"]]
        var pages = RehearsalPages()
        pages.add(
            Self.page(
                3, fired: 1, from: "8", to: "10", before: "8", hours: [("h3", 1)], adding: once))
        pages.add(
            Self.page(
                3, fired: 1, from: "2", to: "7", before: "2", hours: [("h1", 1)],
                adding: ["once": ["position": "4", "at": "T"]]))
        pages.add(Self.page(1, fired: 0, from: "1", to: "1", end: "log", hours: []))
        #expect(pages.answer["fired"] == 1)
        #expect(pages.answer["once"] == ["position": "4", "at": "T"])
        #expect(pages.answer["byHour"] == [["hour": "h1", "fired": 1]])
        #expect(pages.lookedAt == 7)
        var compared = RehearsalPages()
        compared.add(
            Self.page(
                3, fired: 1, from: "8", to: "10", before: "8", hours: [],
                adding: ["change": ["added": 1, "removed": 0, "firedBefore": 1, "once": true]]))
        #expect(compared.isIndivisible && compared.before == nil)
    }

    @Test func `a single push and a single device are reported in the singular`() {
        var pages = RehearsalPages()
        pages.add(
            Self.page(
                0, fired: 0, from: "9", to: "9", before: "9", hours: [], adding: ["devices": 1]))
        pages.add(
            Self.page(
                1, fired: 1, from: "8", to: "8", end: "log", hours: [],
                adding: ["devices": 1, "pushes": 1]))
        let sentence = CommandOutput.shown(pages.answer["sentence"])
        #expect(sentence.hasPrefix("Would have fired once in 1 change that"), "\(sentence)")
        #expect(sentence.hasSuffix(": 1 push to 1 device."), "\(sentence)")
    }

    @Test func `several pages are summed up in the words of one`() {
        var pages = RehearsalPages()
        for (number, before) in [("9", "9"), ("8", nil)] as [(String, String?)] {
            let fired: Int64 = before == nil ? 1 : 0
            let change: JSONObject = [
                "added": .integer(fired), "removed": 0, "firedBefore": .integer(fired),
            ]
            pages.add(
                Self.page(
                    1, fired: fired, from: number, to: number,
                    end: before == nil ? "log" : "changes", before: before, hours: [],
                    adding: [
                        "kindness": ["pushes": 0, "together": 0, "waiting": 1],
                        "change": .object(change),
                    ]))
        }
        let sentence = CommandOutput.shown(pages.answer["sentence"])
        #expect(
            sentence.hasSuffix(
                " Of these, none would have been sent. As it is saved it would have fired once: "
                    + "1 change is added, none is removed."), "\(sentence)")
    }

    @Test func `a page that makes no progress ends the paging`() {
        let cut = Self.page(0, fired: 0, from: "8", to: "8", end: "time", before: "8", hours: [])
        var pages = RehearsalPages()
        let first = pages.add(cut)
        #expect(first && pages.before == "8")
        let second = pages.add(cut)
        let third = pages.add("nothing")
        #expect(!second && !third)
    }
}
