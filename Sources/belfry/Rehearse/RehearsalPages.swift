import RelayModel
import RelayServer

/// Combines answers of `rehearse`, each about earlier changes than the one before.
///
/// It has no side effects.
struct RehearsalPages {
    /// All pages, combined into one answer.
    private(set) var answer: JSONObject = [:]
    private(set) var pages = 0
    /// Whether a once subscription is compared, whose added and removed firings cannot be summed.
    private(set) var isIndivisible = false

    /// The number of changes that were judged.
    var lookedAt: Int { Int(clamping: Self.integer(answer, "lookedAt", "changes")) }

    /// The position at which to continue; `nil` if nothing is left, or a further call would find
    /// nothing.
    var before: String? {
        let ends: [JSONValue] = ["changes", "entries", "time"]
        guard !isIndivisible, let end = Self.value(answer, "lookedAt", "end"), ends.contains(end),
            case .string(let before)? = Self.value(answer, "lookedAt", "before")
        else { return nil }
        return before
    }

    /// Adds an answer about earlier changes; returns whether it advanced.
    @discardableResult
    mutating func add(_ page: JSONValue) -> Bool {
        guard case .object(let older) = page else { return false }
        defer { pages += 1 }
        if pages == 0 {
            answer = older
            isIndivisible =
                older["change"] != nil
                && (older["once"] != nil || Self.value(older, "change", "once") != nil)
            return true
        }
        let moved =
            Self.value(older, "lookedAt", "before") != Self.value(answer, "lookedAt", "before")
        addPlaces(older)
        addCounts(older)
        addExamples(older)
        answer["sentence"] = .string(sentence)
        return moved
    }

    // MARK: Adding up

    private mutating func addPlaces(_ older: JSONObject) {
        guard case .object(var places)? = answer["lookedAt"],
            case .object(let earlier)? = older["lookedAt"]
        else { return }
        places["changes"] = Self.sum(places["changes"], earlier["changes"])
        places["from"] = earlier["from"] ?? places["from"]
        places["to"] = places["to"] ?? earlier["to"]
        places["end"] = earlier["end"]
        places["before"] = earlier["before"]
        answer["lookedAt"] = .object(places)
    }

    private mutating func addCounts(_ older: JSONObject) {
        for name in ["errors", "nearMisses", "change"] {
            guard case .object(var object)? = answer[name], case .object(let earlier)? = older[name]
            else { continue }
            for member in ["count", "among", "firedBefore", "added", "removed"] {
                guard let count = object[member] else { continue }
                object[member] = Self.sum(count, earlier[member])
            }
            object["example"] = object["example"] ?? earlier["example"]
            answer[name] = .object(object)
        }
        if older["once"] != nil {
            // A once subscription would have fired earlier, and then no more.
            for name in [
                "once", "fired", "pushes", "byOperation", "byDay", "byHour", "examples", "kindness",
            ] {
                answer[name] = older[name]
            }
            return
        }
        guard answer["once"] == nil else { return }
        for name in ["fired", "pushes"] { answer[name] = Self.sum(answer[name], older[name]) }
        addKindness(older)
        if case .object(var counts)? = answer["byOperation"],
            case .object(let earlier)? = older["byOperation"]
        {
            for member in earlier.members {
                counts[member.name] = Self.sum(counts[member.name], member.value)
            }
            answer["byOperation"] = .object(counts)
        }
        for (list, name) in [("byDay", "day"), ("byHour", "hour")] {
            answer[list] = Self.times(older[list], answer[list], name)
        }
    }

    /// Adds up the remaining pushes.
    ///
    /// A push that was held across two pages is counted in both.
    private mutating func addKindness(_ older: JSONObject) {
        guard case .object(var left)? = answer["kindness"],
            case .object(let earlier)? = older["kindness"]
        else {
            // If one page has no figures, there are none for all.
            answer["kindness"] = nil
            return
        }
        for name in ["pushes", "together", "waiting"] {
            left[name] = Self.sum(left[name], earlier[name])
        }
        if case .object(var held)? = left["held"], case .object(let before)? = earlier["held"] {
            for member in before.members {
                held[member.name] = Self.sum(held[member.name], member.value)
            }
            left["held"] = .object(held)
        }
        answer["kindness"] = .object(left)
    }

    /// Joins two lists of times, the earlier one first.
    ///
    /// The time at which they meet is in both, and becomes one entry.
    private static func times(
        _ earlier: JSONValue?, _ later: JSONValue?, _ name: String
    ) -> JSONValue? {
        guard case .array(var first)? = earlier, case .array(var second)? = later else {
            return later
        }
        if case .object(var last)? = first.last, case .object(let next)? = second.first,
            last[name] == next[name]
        {
            last["fired"] = sum(last["fired"], next["fired"])
            first[first.count - 1] = .object(last)
            second.removeFirst()
        }
        return .array(first + second)
    }

    /// Keeps the newest examples.
    ///
    /// Earlier ones are used only if a list was empty.
    private mutating func addExamples(_ older: JSONObject) {
        func isEmpty(_ value: JSONValue?) -> Bool { value == nil || value == .array([]) }
        if isEmpty(answer["examples"]) { answer["examples"] = older["examples"] }
        for (name, lists) in [
            ("nearMisses", ["examples"]), ("change", ["addedExamples", "removedExamples"]),
        ] {
            guard case .object(var object)? = answer[name], case .object(let earlier)? = older[name]
            else { continue }
            for list in lists where isEmpty(object[list]) { object[list] = earlier[list] }
            answer[name] = .object(object)
        }
    }

    private var sentence: String {
        func text(_ path: String...) -> String { CommandOutput.shown(Self.value(answer, path)) }
        func counted(_ count: String, _ noun: String) -> String {
            Int(count).map { Counted.text($0, noun, noun == "push" ? "pushes" : nil) }
                ?? "\(count) \(noun)s"
        }
        func orNone(_ count: String) -> String { count == "0" ? "none" : count }
        func times(_ count: String) -> String {
            switch count {
            case "0": "not once"
            case "1": "once"
            default: "\(count) times"
            }
        }
        func edited(_ count: String) -> String {
            count == "0" ? "none is" : counted(count, "change") + (count == "1" ? " is" : " are")
        }
        let changes = counted(text("lookedAt", "changes"), "change")
        var sentence =
            "Would have fired \(times(text("fired"))) in \(changes) that it could "
            + "watch, from position \(text("lookedAt", "from", "position")) "
            + "(\(text("lookedAt", "from", "at"))) to "
            + "\(text("lookedAt", "to", "position")) (\(text("lookedAt", "to", "at"))): "
            + "\(counted(text("pushes"), "push")) to \(counted(text("devices"), "device"))."
        if answer["kindness"] != nil {
            sentence += " Of these, \(orNone(text("kindness", "pushes"))) would have been sent."
        }
        if answer["once"] != nil {
            sentence += " It fires once: by the change at \(text("once", "position"))."
        }
        if answer["change"] != nil {
            sentence +=
                " As it is saved it would have fired "
                + "\(times(text("change", "firedBefore"))): "
                + "\(edited(text("change", "added"))) added, "
                + "\(edited(text("change", "removed"))) removed."
        }
        return sentence
    }

    private static func sum(_ first: JSONValue?, _ second: JSONValue?) -> JSONValue {
        guard case .integer(let first)? = first else { return second ?? 0 }
        guard case .integer(let second)? = second else { return .integer(first) }
        return .integer(first + second)
    }

    private static func integer(_ object: JSONObject, _ path: String...) -> Int64 {
        if case .integer(let number)? = value(object, path) { number } else { 0 }
    }

    private static func value(_ object: JSONObject, _ path: String...) -> JSONValue? {
        value(object, path)
    }

    private static func value(_ object: JSONObject, _ path: [String]) -> JSONValue? {
        JSONValue.object(object).member(path)
    }
}
