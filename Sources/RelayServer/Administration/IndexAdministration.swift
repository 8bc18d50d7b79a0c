import Fanout
import Matching
import RelayModel
import Storage

/// The call that shows a container's index, and the cost of matching.
struct IndexAdministration: AdministrationTable {
    let registry: any ContainerRegistry
    let indexes: IndexDirectory

    /// The maximum number of fields in the answer.
    private static let mostPaths = 1000

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.showIndex, respond: index)
        ]
    }

    private func index(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let index = indexes.index(of: container)
        let statistics = await indexes.whenFree(container) {
            index?.statistics ?? IndexStatistics()
        }
        let paths = (index?.paths ?? []).prefix(Self.mostPaths)
        var answer = statistics.figures
        let types = Set(paths.compactMap(\.recordType)).sorted()
        let costs = indexes.costs(of: container)
        answer["recordTypes"] = .array(
            types.map { type in
                [
                    "recordType": .string(type.rawValue),
                    "comparisonsPerChange": .number(costs?.comparisonsPerChange(of: type) ?? 0),
                ]
            })
        answer["paths"] = .array(paths.map(\.json))
        return RelayAnswer(json: .object(answer))
    }
}

extension IndexStatistics {
    /// The statistics as JSON, with the ratios that help an operator judge the index.
    var figures: JSONObject {
        func ratio(_ part: UInt64, _ whole: UInt64) -> JSONValue {
            whole == 0 ? .null : .number((Double(part) / Double(whole) * 1000).rounded() / 1000)
        }
        return [
            "subscriptions": .integer(Int64(subscriptions)), "keys": .integer(Int64(keys)),
            "plainPostings": .integer(Int64(plainPostings)),
            "rangePostings": .integer(Int64(rangePostings)),
            "guardedPostings": .integer(Int64(guardedPostings)),
            "sharedPostings": .integer(Int64(sharedPostings)),
            "residuals": .integer(Int64(residuals)), "programs": .integer(Int64(programs)),
            "bytes": .integer(Int64(bytes)), "changes": .integer(Int64(clamping: changes)),
            "matches": .integer(Int64(clamping: matches)),
            "candidates": .integer(Int64(clamping: candidates)),
            "confirmed": .integer(Int64(clamping: confirmed)),
            "evaluationErrors": .integer(Int64(clamping: errors)),
            "matchesPerChange": ratio(matches, changes),
            "candidatesPerMatch": ratio(candidates, matches),
            "confirmedPerCandidate": ratio(confirmed, candidates),
        ]
    }
}

extension IndexedField {
    var json: JSONValue {
        [
            "recordType": recordType.map { .string($0.rawValue) } ?? .null,
            "field": .string(field), "asks": .string(asks), "keys": .integer(Int64(keys)),
        ]
    }
}
