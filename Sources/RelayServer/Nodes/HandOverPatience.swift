import StoragePostgreSQL

/// Decides when the owner of a store hands it to the machine that should own it: a pure decision.
///
/// No store is handed over while relays come or go, nor soon after its owner took it, because a
/// move interrupts all clients of the store for a moment.
struct HandOverPatience: Sendable {
    /// The times of the decision.
    struct Settings: Sendable, Hashable {
        /// How long all relays must have been unchanged.
        var quiet = Duration.seconds(10)
        /// How long the owner must have had the store, so that no store moves twice within that
        /// time.
        var tenure = Duration.seconds(60)
        /// The greatest age of the last look at the relays.
        var sight = Duration.seconds(5)
    }

    /// The decision.
    enum Verdict: Sendable, Hashable {
        /// The store stays; the hindrance, if no store may be moved.
        case keep(hindrance: String?)
        /// The store is handed to this machine.
        case handOver(to: String)
    }

    private let schema: String
    private let machine: String
    private let settings: Settings
    private var last = StoreCensus.Sight()
    private var seenAt = Duration.zero
    private var quietSince = Duration.zero
    /// The decision on the last view, which takes effect once the view has been unchanged for a
    /// while.
    private var settled = Verdict.keep(hindrance: nil)

    /// Creates the decision for the store in `schema`, which a relay on `machine` has just taken.
    init(of schema: String, on machine: String, _ settings: Settings = Settings()) {
        self.schema = schema
        self.machine = machine
        self.settings = settings
    }

    /// Returns the decision after the last look at the relays.
    ///
    /// - Parameters:
    ///   - sight: The result of the look.
    ///   - isFollowing: Whether the log is followed; before that the store recovers.
    ///   - moment: How long the store has been owned.
    /// - Returns: Whether the store stays or is handed over.
    mutating func verdict(
        on sight: StoreCensus.Sight, isFollowing: Bool, at moment: Duration
    ) -> Verdict {
        if sight.looks != last.looks { seenAt = moment }
        let isNews = sight.view != last.view || sight.failure != last.failure
        if isNews || moment - seenAt > settings.sight {
            quietSince = moment
            settled = judge(sight)
        }
        last = sight
        guard moment - quietSince >= settings.quiet else { return .keep(hindrance: nil) }
        if case .handOver = settled, !isFollowing || moment < settings.tenure {
            return .keep(hindrance: nil)
        }
        return settled
    }

    private func judge(_ sight: StoreCensus.Sight) -> Verdict {
        guard let view = sight.view else {
            return .keep(
                hindrance: sight.failure.map { "cannot read the relays of all stores: \($0)" })
        }
        if let hindrance = view.hindrance { return .keep(hindrance: hindrance) }
        guard view.owner(of: schema) == machine, let other = view.machine(for: schema),
            other != machine
        else { return .keep(hindrance: nil) }
        return .handOver(to: other)
    }
}
