import StoragePostgreSQL
import Testing

@testable import RelayServer

/// When the owner of a store hands it over to the machine that should own it.
@Suite struct HandOverPatienceTests {
    private typealias Relay = StoreView.Relay

    /// Returns the relays of two stores, both owned by `north`; `south` stands by for them.
    private static func relays(warm: Bool = true, list: String? = "a,b") -> [Relay] {
        ["a", "b"].flatMap { schema in
            [
                Relay(
                    schema: schema, name: "n", machine: "north", stores: "a,b", isOwner: true),
                Relay(
                    schema: schema, name: "s", machine: "south", stores: list, isWarm: warm),
            ]
        }
    }

    private static func view(_ relays: [Relay]) -> StoreView {
        StoreView(of: ["a", "b"], Set(relays))
    }

    /// The store that moves, and the one that stays.
    private static var stores: (moves: String, stays: String) {
        view(relays()).machine(for: "a") == "south" ? ("a", "b") : ("b", "a")
    }

    /// Asks for the verdict once a second.
    ///
    /// At the given seconds, what is seen changes to `views`.
    private static func verdicts(
        of schema: String, on machine: String = "north", seconds: ClosedRange<Int>,
        unseen: ClosedRange<Int>? = nil, recovered: Int = 0, _ views: [Int: StoreView?]
    ) -> [Int: HandOverPatience.Verdict] {
        var patience = HandOverPatience(of: schema, on: machine)
        var sight = StoreCensus.Sight()
        var verdicts: [Int: HandOverPatience.Verdict] = [:]
        for second in seconds {
            if let view = views[second] { sight.view = view }
            if unseen?.contains(second) != true { sight.looks += 1 }
            verdicts[second] = patience.verdict(
                on: sight, isFollowing: second >= recovered, at: .seconds(second))
        }
        return verdicts
    }

    private static func firstHandOver(_ verdicts: [Int: HandOverPatience.Verdict]) -> Int? {
        verdicts.filter { $0.value == .handOver(to: "south") }.keys.min()
    }

    private static let keep = HandOverPatience.Verdict.keep(hindrance: nil)

    @Test func `one of two stores is handed over after a minute, and the other stays`() {
        let view = Self.view(Self.relays())
        let stores = Self.stores
        let moves = Self.verdicts(of: stores.moves, seconds: 1...120, [1: view])
        #expect(Self.firstHandOver(moves) == 60)
        #expect(moves.allSatisfy { $0.key >= 60 || $0.value == Self.keep })
        let stays = Self.verdicts(of: stores.stays, seconds: 1...120, [1: view])
        #expect(stays.values.allSatisfy { $0 == Self.keep })
    }

    @Test func `all relays must have been stable for ten seconds`() {
        let (view, cold) = (Self.view(Self.relays()), Self.view(Self.relays(warm: false)))
        let store = Self.stores.moves
        func first(_ views: [Int: StoreView?]) -> Int? {
            Self.firstHandOver(Self.verdicts(of: store, seconds: 1...200, views))
        }
        #expect(first([1: cold, 100: view]) == 110)
        #expect(first([1: view, 57: cold, 59: view]) == 69)
        // A look that failed does not count as a sight of the relays.
        #expect(first([1: view, 55: nil, 56: view]) == 66)
        #expect(first([1: cold]) == nil)
    }

    @Test func `an owner that does not see the others hands nothing over`() {
        let view = Self.view(Self.relays())
        let verdicts = Self.verdicts(
            of: Self.stores.moves, seconds: 1...200, unseen: 40...100, [1: view])
        // The relays are seen again at second 101, and stay as they are.
        #expect(Self.firstHandOver(verdicts) == 110)
    }

    @Test func `a store that recovers is not handed over`() {
        let verdicts = Self.verdicts(
            of: Self.stores.moves, seconds: 1...200, recovered: 150, [1: Self.view(Self.relays())])
        #expect(Self.firstHandOver(verdicts) == 150)
    }

    @Test func `nothing is handed over while relays have different lists`() throws {
        for (list, words) in [("a,b,c", "other nodes.schemas"), (nil, "takes no part")] {
            let view = Self.view(Self.relays(list: list))
            let verdicts = Self.verdicts(of: Self.stores.moves, seconds: 1...200, [1: view])
            #expect(verdicts[10] == Self.keep)
            guard case .keep(let hindrance?) = verdicts[200] else {
                Issue.record("\(String(describing: verdicts[200]))")
                continue
            }
            #expect(hindrance.hasPrefix("s of schema a"))
            #expect(hindrance.contains(words), "\(hindrance)")
        }
        var older = Self.relays()
        older.append(Relay(schema: "b", name: "old", machine: nil, stores: nil))
        let hindrance = Self.view(older).hindrance
        #expect(hindrance?.contains("old of schema b does not say on which machine") == true)
    }

    @Test func `an owner that cannot read the other stores says why nothing moves`() {
        var patience = HandOverPatience(of: "a", on: "north")
        var last = Self.keep
        for second in 1...20 {
            let sight = StoreCensus.Sight(looks: UInt64(second), failure: "permission denied")
            last = patience.verdict(on: sight, isFollowing: true, at: .seconds(second))
        }
        #expect(
            last
                == .keep(
                    hindrance: "cannot read the relays of all stores: permission denied"))
    }

    @Test func `two relays of one machine count as one`() {
        var relays = Self.relays(warm: false)
        relays += ["a", "b"].map {
            Relay(schema: $0, name: "n2", machine: "north", stores: "a,b", isWarm: true)
        }
        let verdicts = Self.verdicts(
            of: Self.stores.moves, seconds: 1...200, [1: Self.view(relays)])
        #expect(Self.firstHandOver(verdicts) == nil)
    }
}
