import Foundation
import Testing

extension TidyTests {
    /// Protocols with only one conforming type in the product, and the reason for each.
    static let lonelyProtocols = [
        "FoundationFilter": "a generic type of Foundation can be asked by no other name",
        "TransferOwner": "a connection of libcurl need not know the pool that it reports to",
    ]

    /// The seam of storage: the protocols through which the walk and the routes use a store.
    ///
    /// `RelayStore` implements them over every engine (docs/architecture.md).
    static let seam: Set<String> = [
        "AccessKeyRegistry", "ActiveVersions", "AdministrationRegistry", "ContainerRegistry",
        "CourierQueue", "DeadLetterRegistry", "DeliveryRegistry", "DeviceRegistry", "FanoutRanges",
        "InboxRegistry", "IntakeLog", "ParkedChangeRegistry", "PastRegistry",
        "ProviderTokenRegistry", "Registry", "SessionRegistry", "Shadow", "ShardHandle", "ShardLog",
        "ShardProgress", "SourceRegistry", "StandbyVersions",
        "StateSnapshots", "StoreUpkeep", "SubscriptionRegistry",
    ]

    @Test func `a protocol has two conformers, or one and a double in the tests`() {
        var finds: [String] = []
        for (file, number, name) in Self.protocols
        where Self.lonelyProtocols[name] == nil && !Self.seam.contains(name) {
            let count = Self.conformances[name] ?? 0
            if count < 2 { finds.append(place(file, number, "\(name): \(count) conformers")) }
        }
        #expect(finds == [])
    }

    @Test func `the protocols of the seam are in Storage and are implemented`() {
        let declared = Self.protocols.filter { $0.file.room == "Storage" }.map(\.name)
        #expect(Self.seam.subtracting(declared) == [])
        #expect(Self.seam.filter { Self.conformances[$0] == nil } == [])
    }

    /// The protocols of the product, with the place of each declaration.
    private static let protocols: [(file: Repository.File, number: Int, name: String)] =
        Repository.sources.flatMap { file in
            file.numbered.compactMap { number, line in
                guard line.has("protocol "), !isComment(line),
                    let name = line.firstMatch(of: #/^\s*(?:\w+ )*protocol (\w+)/#)?.1
                else { return nil }
                return (file, number, String(name))
            }
        }

    /// A type that holds the whole registry can do more than it needs.
    @Test func `only the root of the routes holds the whole registry`() {
        let holders = Repository.sources.filter { file in
            file.lines.contains {
                $0.has("Registry") && !isComment($0)
                    && $0.contains(#/[:&] (?:any )?Registry\b(?!:)/#)
            }
        }
        #expect(
            Set(holders.map(\.path)) == [
                "Sources/RelayServer/Composition/RelayDependencies.swift",
                "Sources/StorageSQL/RelayStore+Seam.swift",
            ])
    }

    @Test func `the reasons for lonely protocols are up to date`() {
        let found = Self.lonelyProtocols.keys.filter { (Self.conformances[$0] ?? 0) != 1 }
        #expect(found.isEmpty)
    }

    /// For each name, how many types of the product and the tests, and protocols, mention it behind
    /// a colon.
    private static let conformances: [String: Int] = {
        var counts: [String: Int] = [:]
        let declaration =
            #/(?:struct|class|enum|actor|extension|protocol) [\w.]+(?:<[^{]*?>)?\s*:\s*([^{]*)\{/#
        for file in Repository.swift {
            let text = file.lines.filter { !isComment($0) }.joined(separator: "\n")
            for match in text.matches(of: declaration) {
                let heritage = String(match.1).components(separatedBy: " where ")[0]
                let names = Set(heritage.split { !$0.isLetter && !$0.isNumber && $0 != "_" })
                for name in names { counts[String(name), default: 0] += 1 }
            }
        }
        return counts
    }()

    /// The files of the index that switch off the checks of exclusive access.
    ///
    /// The index itself keeps its readers and its writer apart.
    static let uncheckedFiles: Set<String> = [
        "Sources/Matching/Arena/KeyTable.swift", "Sources/Matching/Arena/WordArena.swift",
        "Sources/Matching/Index/IndexContent.swift", "Sources/Matching/Index/IndexCore.swift",
        "Sources/Matching/Index/IndexReader.swift", "Sources/Matching/Planning/Planner.swift",
        "Sources/Matching/Postings/PostingStore.swift",
        "Sources/Matching/Programs/ProgramStore.swift",
        "Sources/Matching/Vector/DecodedChange.swift",
    ]

    @Test func `unchecked exclusive access occurs in listed files only`() {
        var finds: [String] = []
        for file in Repository.swift
        where !Self.uncheckedFiles.contains(file.path) && !file.path.hasPrefix("Tests/TidyTests/") {
            for (number, line) in file.numbered where line.has("@exclusivity(unchecked)") {
                finds.append(place(file, number, "@exclusivity(unchecked)"))
            }
        }
        #expect(finds == [])
    }

    /// A room without pointers must be in the manifest's `safeRooms`, for which the compiler checks
    /// memory safety.
    @Test func `rooms without pointers are checked for memory safety`() throws {
        let words = ["Unsafe", "Unmanaged", "OpaquePointer"]
        let manifest = try Repository.file("Package.swift").lines.joined(separator: "\n")
        let list = try #require(manifest.firstMatch(of: #/safeRooms = \[([^\]]*)\]/#)?.1)
        let rooms = Set(Repository.sources.compactMap(\.room))
        let pointed = Repository.sources.filter { file in
            file.lines.contains { line in
                !isComment(line) && words.contains { line.has($0) }
            }
        }
        let unchecked = rooms.subtracting(pointed.compactMap(\.room))
            .filter { !list.contains("\"\($0)\"") }
        #expect(unchecked.isEmpty)
    }
}
