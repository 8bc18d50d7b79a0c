import Foundation
import Testing

/// The rules of the project that the compiler cannot enforce.
@Suite struct TidyTests {
    /// The rooms that each room may import (docs/architecture.md).
    ///
    /// The manifest says the same. The rule is repeated here because a manifest is easily widened.
    static let neighbours: [String: Set<String>] = [
        "RelayModel": [],
        "PredicateLanguage": ["RelayModel"],
        "RegularExpressions": ["RelayModel", "PredicateLanguage", "CRE2"],
        "Matching": ["RelayModel", "PredicateLanguage", "RegularExpressions"],
        "ChangeSources": ["RelayModel"],
        "PostgresLink": ["Platform", "CPQ", "CNoPQ"],
        "PostgresFollowing": ["RelayModel", "ChangeSources", "PostgresLink"],
        "Storage": ["RelayModel"],
        "StoragePostgreSQL": [
            "RelayModel", "Storage", "StorageSQL", "Migrations", "PostgresLink", "Platform",
        ],
        "StorageSQL": ["RelayModel", "Storage"],
        "StorageSQLite": [
            "RelayModel", "Storage", "StorageSQL", "Migrations", "Platform", "CSQLite",
        ],
        "LogShipping": ["RelayModel", "Storage", "StorageSQL", "StorageSQLite"],
        "Fanout": ["RelayModel", "PredicateLanguage", "Matching", "Storage"],
        "Gateway": ["RelayModel", "Platform", "CCurl"],
        "Delivery": ["RelayModel", "Storage", "Gateway"],
        "GatewaySimulator": [],
        "EmbeddedFiles": ["CEmbeddedFiles"],
        "Migrations": ["EmbeddedFiles"],
        "Platform": ["CPlatform"],
    ]

    static let rooms: Set<String> = Set(neighbours.keys).union([
        "RelayServer", "belfry", "CCurl", "CEmbeddedFiles", "CRE2", "CSQLite", "CPQ", "CNoPQ",
        "CPlatform",
    ])

    @Test func `a room imports only its neighbours`() {
        var strays: [String] = []
        for file in Repository.sources {
            guard let room = file.room, let allowed = Self.neighbours[room] else { continue }
            for (number, line) in file.numbered where line.has("import ") {
                guard let module = importedModule(line), Self.rooms.contains(module),
                    !allowed.contains(module)
                else { continue }
                strays.append(place(file, number, "\(room) imports \(module)"))
            }
        }
        #expect(strays == [])
    }

    private func importedModule(_ line: String) -> String? {
        let words = line.split(separator: " ").map(String.init)
        guard let index = words.firstIndex(of: "import"), index + 1 < words.count,
            words[..<index].allSatisfy({
                ["public", "package", "internal", "private", "@testable", "@preconcurrency"]
                    .contains($0)
            })
        else { return nil }
        let kinds = ["struct", "class", "enum", "protocol", "func", "let", "var", "typealias"]
        let name = kinds.contains(words[index + 1]) ? words.last : words[index + 1]
        return name?.split(separator: ".").first.map(String.init)
    }

    /// What reads clocks, randomness or the environment directly, and what to use instead.
    static let ambient: [(pattern: String, instead: String)] = [
        ("Date()", "the clock that comes in"),
        ("Date.now", "the clock that comes in"),
        ("ContinuousClock()", "the clock that comes in"),
        ("SuspendingClock()", "the clock that comes in"),
        ("SystemRandomNumberGenerator()", "the generator that comes in"),
        (".randomElement()", "randomElement(using:)"),
        (".shuffled()", "shuffled(using:)"),
        ("UUID()", "the random bytes that come in"),
        ("ProcessInfo.", "the configuration"),
        ("getenv(", "the configuration"),
        ("Task.detached", "a task group"),
        // glibc implements these waits with a time of day: if the clock is set back, they become
        // long.
        ("DispatchSemaphore(", "a continuation, or the writer's WakeUp"),
        (".wait(timeout:", "a wait that counts what has passed"),
        ("asyncAfter(", "the clock that comes in"),
        ("NSCondition", "a continuation, or the writer's WakeUp"),
        ("pthread_cond_timedwait", "a wait that counts what has passed"),
        ("sem_timedwait", "a wait that counts what has passed"),
    ]

    /// Where clocks, randomness and the environment are read, besides the executable: the
    /// composition root.
    static let worldly: Set<String> = ["Sources/RelayServer/World.swift"]

    @Test func `only the composition root and the executable read clocks and environment`() {
        var finds: [String] = []
        for file in Repository.sources
        where file.room != "belfry" && file.room != "GatewaySimulator"
            && !Self.worldly.contains(file.path)
        {
            for (number, line) in file.numbered where !isComment(line) {
                for (pattern, instead) in Self.ambient where line.has(pattern) {
                    finds.append(place(file, number, "\(pattern): use \(instead)"))
                }
            }
        }
        #expect(finds == [])
    }

    /// Where pointers may be used.
    ///
    /// These are the loop around curl, the arena and the code that reads it in place, the search
    /// through texts of megabytes, and the wrappers of C libraries.
    static let unsafePlaces = [
        "Sources/EmbeddedFiles", "Sources/Gateway/Curl",
        "Sources/Live/Engine/GroupPlace.swift", "Sources/Matching/Arena",
        "Sources/Matching/Postings", "Sources/Matching/Programs", "Sources/Matching/Vector",
        "Sources/Matching/Index/IndexCore", "Sources/Matching/Index/MatchOrder.swift",
        "Sources/Matching/Values/BytesSearch.swift", "Sources/Matching/Values/KeyBytes.swift",
        "Sources/Matching/Values/TextWords.swift",
        "Sources/Matching/Values/Value", "Sources/Matching/Planning/Planner+Estimates.swift",
        "Sources/PostgresLink", "Sources/StorageSQLite/Access", "Sources/Platform",
        "Sources/RelayModel/JSON/JSONPlainText.swift",
    ]

    @Test func `pointers occur only in listed files`() {
        let words = ["UnsafeMutable", "UnsafePointer", "UnsafeRaw", "UnsafeBuffer", "Unmanaged"]
        var finds: [String] = []
        for file in Repository.sources
        where !Self.unsafePlaces.contains(where: { file.path.hasPrefix($0) })
            && file.room != "belfry"
        {
            for (number, line) in file.numbered where !isComment(line) {
                if let word = words.first(where: { line.has($0) }) {
                    finds.append(place(file, number, word))
                }
            }
        }
        #expect(finds == [])
    }

    /// A lock passes its value on as a generic one.
    ///
    /// A bare function that is passed so comes back wrapped once more after each access, and memory
    /// and time grow for ever.
    @Test func `no lock holds a bare function`() {
        let names = Repository.sources.flatMap(\.numbered).compactMap { _, line in
            line.has("typealias ")
                ? line.firstMatch(of: /typealias (\w+) =.*->/).map { String($0.1) } : nil
        }
        #expect(names.contains("PushCompletionSink"))
        var finds: [String] = []
        for file in Repository.sources {
            for (number, line) in file.numbered {
                guard line.has("Mutex<"), let held = line.firstMatch(of: /Mutex<(.*)/)?.1
                else { continue }
                let name = String(held.prefix(while: \.isLetter))
                if held.contains("->") || names.contains(name) {
                    finds.append(place(file, number, "wrap the function in a structure"))
                }
            }
        }
        #expect(finds == [])
    }

    @Test func `every unchecked Sendable has a comment on what protects it`() {
        var finds: [String] = []
        for file in Repository.sources {
            for (number, line) in file.numbered
            where line.has("@unchecked Sendable") && !isComment(line) {
                let before = file.lines[max(0, number - 8)..<(number - 1)]
                if !before.contains(where: isComment) {
                    finds.append(place(file, number, "@unchecked Sendable without a comment"))
                }
            }
        }
        #expect(finds == [])
    }

    @Test func `forbidden words are absent`() {
        let words = [
            ("fileprivate ", "private or internal"), ("TO" + "DO", "a decision record"),
            ("FIX" + "ME", "a decision record"), ("try!", "try"), (" as! ", "as?"),
            // On Linux, Dispatch crashes if the handler is removed while the end of its input is
            // being read.
            ("readability" + "Handler", "a thread that reads"),
        ]
        var finds: [String] = []
        for file in Repository.swift {
            for (number, line) in file.numbered where !file.path.hasPrefix("Tests/TidyTests") {
                for (word, instead) in words where line.has(word) {
                    finds.append(place(file, number, "\(word): use \(instead)"))
                }
            }
        }
        #expect(finds == [])
    }

    /// What the relay stores may be nested more deeply than what clients may send, and must stay
    /// readable.
    @Test func `stored JSON is written and read with the limit for stored JSON`() {
        let rooms = ["Storage", "StoragePostgreSQL", "StorageSQL", "StorageSQLite"]
        let storing = rooms + ["Fanout", "Matching"]
        var finds: [String] = []
        for file in Repository.sources where storing.contains(file.room ?? "") {
            for (number, line) in file.numbered where !isComment(line) {
                if line.has("JSONValue(parsing:") {
                    finds.append(place(file, number, "JSONValue(parsing:): use JSONValue(stored:)"))
                }
                if rooms.contains(file.room ?? ""),
                    line.has(").text"),
                    line.contains(/JSONValue\.(object|array)\(.*\)\.text\b|^ *\)\.text\b/)
                {
                    finds.append(place(file, number, "text: use storedText()"))
                }
            }
        }
        #expect(finds == [])
    }

    /// For a comparison of several columns with the rows of a subquery, SQLite's lookup uses only
    /// the first column, which is mostly the container.
    @Test func `rows are looked up by all columns of their key`() {
        // Zones are few, and these statements are rare.
        let rare = ["RelayStore+Marks.swift", "SchemaStep.swift"]
        var finds: [String] = []
        for file in Repository.sources where file.room == "StorageSQL" {
            guard !rare.contains(where: { file.path.hasSuffix($0) }) else { continue }
            for (number, line) in file.numbered where !isComment(line) {
                guard line.has(") IN ("), line.contains(/\(\w+(, \w+)+\) IN \(/) else { continue }
                finds.append(place(file, number, "(…, …) IN: use deleteRows(of:by:_:_:)"))
            }
        }
        #expect(finds == [])
    }

    /// The standard library's own initialiser takes four times as long for a word.
    @Test func `bytes become strings by the initialiser that is fast for ASCII`() {
        var finds: [String] = []
        for file in Repository.sources
        where file.room != "GatewaySimulator" && !file.path.hasSuffix("/String+UTF8.swift") {
            for (number, line) in file.numbered where line.has("String(validating:") {
                finds.append(place(file, number, "String(validating:as:): use String(utf8:)"))
            }
        }
        #expect(finds == [])
    }

    @Test func `only the executable prints`() {
        var finds: [String] = []
        for file in Repository.sources where file.room != "belfry" {
            for (number, line) in file.numbered
            where line.trimmingCharacters(in: .whitespaces).hasPrefix("print(\"") {
                finds.append(place(file, number, "print"))
            }
        }
        #expect(finds == [])
    }

    @Test func `no module has a type with its own name`() {
        var finds: [String] = []
        let keywords = ["struct", "class", "enum", "actor", "protocol"]
        for file in Repository.sources {
            guard let room = file.room else { continue }
            for (number, line) in file.numbered {
                for keyword in keywords where line.contains("\(keyword) \(room) ") {
                    finds.append(place(file, number, "\(keyword) \(room)"))
                }
            }
        }
        #expect(finds == [])
    }
}

/// Returns whether a line contains nothing but a comment.
func isComment(_ line: String) -> Bool {
    line.utf8.drop { $0 == 0x20 }.starts(with: "//".utf8)
}
