import StoragePostgreSQL

/// When the owner of a store hands it to the machine that should own it: a pure decision.
///
/// Nothing is handed over while anything comes or goes, and by nobody who has not had the store for
/// a while: a store that moves costs every client of it a moment.
struct HandOverPatience: Sendable {
    /// How patient it is.
    struct Settings: Sendable, Hashable {
        /// How long all relays must have been as they are.
        var quiet = Duration.seconds(10)
        /// How long the owner must have had the store: no store moves twice within that.
        var tenure = Duration.seconds(60)
        /// How old the last look at the relays may be.
        var sight = Duration.seconds(5)
    }

    /// What follows.
    enum Verdict: Sendable, Hashable {
        /// The store stays; and why none is moved at all, if that is so.
        case keep(hindrance: String?)
        /// It is handed to this machine.
        case handOver(to: String)
    }

    private let schema: String
    private let machine: String
    private let settings: Settings
    private var last = StoreCensus.Sight()
    private var seenAt = Duration.zero
    private var quietSince = Duration.zero
    /// What follows from the last view, once it has stayed for a while.
    private var settled = Verdict.keep(hindrance: nil)

    /// Decides about the store in `schema`, which a relay on `machine` owns from now on.
    init(of schema: String, on machine: String, _ settings: Settings = Settings()) {
        self.schema = schema
        self.machine = machine
        self.settings = settings
    }

    /// What follows from the last look at the relays.
    ///
    /// - Parameters:
    ///   - sight: What it found.
    ///   - isFollowing: Whether the log is followed; before that the store recovers.
    ///   - moment: How long the store is owned.
    /// - Returns: Whether the store stays.
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
                hindrance: sight.failure.map { "the relays of all stores cannot be seen: \($0)" })
        }
        if let hindrance = view.hindrance { return .keep(hindrance: hindrance) }
        guard view.owner(of: schema) == machine, let other = view.machine(for: schema),
            other != machine
        else { return .keep(hindrance: nil) }
        return .handOver(to: other)
    }
}
