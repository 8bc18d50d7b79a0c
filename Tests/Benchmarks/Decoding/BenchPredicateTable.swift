import Glibc
import PredicateLanguage
import RelayModel

/// The records of the benchmark, and the same values in plain arrays.
struct PredicateBenchTable {
    let rows: [RecordFields]
    let prices: [Int64]
    let ratings: [Double]
    let artists: [String]
    let tags: [[String]]

    init(count: Int) {
        prices = (0..<count).map { Int64($0 * 7919 % 200) }
        ratings = (0..<count).map { Double($0 * 104_729 % 50) / 10 }
        artists = (0..<count).map { "artist-\($0 * 31 % 97)" }
        let colours = ["red", "green", "blue", "yellow"]
        tags = (0..<count).map { row in (0...(row % 4)).map { colours[(row + $0) % 4] } }
        var rows: [RecordFields] = []
        for row in 0..<count {
            rows.append([
                "price": .integer(prices[row]), "rating": .double(ratings[row]),
                "artist": .string(artists[row]), "tags": .list(tags[row].map(FieldValue.string)),
                "title": .string("Untitled \(row)"), "sold": .bool(row % 2 == 0),
            ])
        }
        self.rows = rows
    }

    /// Returns the predicates that are measured, each with its plain loop.
    func measures() throws -> [PredicateBenchMeasure] {
        [
            try measure("price < 100") { $0.prices[$1] < 100 },
            try measure("artist == 'artist-7'") { $0.artists[$1] == "artist-7" },
            try measure("artist == 'artist-7' AND price < 100") {
                $0.artists[$1] == "artist-7" && $0.prices[$1] < 100
            },
            try measure("rating BETWEEN {2, 4}") { $0.ratings[$1] >= 2 && $0.ratings[$1] <= 4 },
            try measure("artist BEGINSWITH 'artist-1'") { $0.artists[$1].hasPrefix("artist-1") },
            try measure("artist ==[c] 'ARTIST-7'") { $0.artists[$1].lowercased() == "artist-7" },
            try measure("price IN {1, 2, 3, 5, 8, 13}") {
                [1, 2, 3, 5, 8, 13].contains($0.prices[$1])
            },
            try measure("ANY tags == 'red'") { $0.tags[$1].contains("red") },
            try measure("artist LIKE '*-7'") { $0.artists[$1].hasSuffix("-7") },
            try measure("price * 2 + 1 > 150") { $0.prices[$1] * 2 + 1 > 150 },
            try realm("price < 100") { $0.prices[$1] < 100 },
            try realm("artist == 'artist-7'") { $0.artists[$1] == "artist-7" },
            try realm("tags == 'red'") { $0.tags[$1].contains("red") },
        ]
    }

    private func measure(
        _ format: String, _ plain: @escaping (PredicateBenchTable, Int) -> Bool
    ) throws -> PredicateBenchMeasure {
        PredicateBenchMeasure(
            name: format, predicate: try RecordPredicate(format: format), plain: plain)
    }

    private func realm(
        _ query: String, _ plain: @escaping (PredicateBenchTable, Int) -> Bool
    ) throws -> PredicateBenchMeasure {
        PredicateBenchMeasure(
            name: query + " (RQL)", predicate: try RecordPredicate(rql: query), plain: plain)
    }
}

/// Counts calls of `malloc` and its relatives.
///
/// It works if `Tests/Benchmarks/count-allocations` has put a counting `malloc` before that of the
/// C library (GNU C Library Manual, "Replacing malloc").
enum AllocationCount {
    private typealias Read = @convention(c) () -> Int

    /// Returns the number of allocations that `body` makes, or `nil` if they are not counted.
    static func during(_ body: () -> Void) -> Int? {
        guard let symbol = dlsym(nil, "belfry_allocation_count") else { return nil }
        let read = unsafeBitCast(symbol, to: Read.self)
        let before = read()
        body()
        return read() - before
    }
}
