import Matching
import RelayModel
import Storage

extension LiveEngine {
    /// A record that was read, with the waiting results that it belongs to.
    struct Found: Sendable {
        let record: LiveRecord
        /// The numbers of the results, ascending.
        let groups: [UInt32]
    }

    /// The outcome of a reading so far.
    struct Reading: Sendable {
        var found: [Found] = []
        var rows = 0
        /// Whether a record of the type, found or not, may not be read by everybody.
        var namesReaders = false
        /// Whether conditions took too many steps for one record, even after the last retry.
        var isGivenUp = false

        /// Removes what was found only for the given results.
        mutating func forget(_ groups: Set<UInt32>) {
            guard !groups.isEmpty else { return }
            found = found.compactMap { row in
                let rest = row.groups.filter { !groups.contains($0) }
                return rest.isEmpty ? nil : Found(record: row.record, groups: rest)
            }
        }
    }

    /// The results that a reading is for, which are matched against each record.
    struct Waiting: Sendable {
        private let index: SubscriptionIndex
        /// The numbers of these results; `nil` if the index has no others.
        private let asked: Set<UInt32>?
        /// The grant that says who may read records that name no readers, in the public database.
        private let grant: ReadGrant?
        /// The results that belong to one reader each.
        private var own = OwnResults()
        /// The orders of the results that have bounds.
        private var orders: [UInt32: ResultOrder] = [:]
        /// The results that belong to the server alone.
        private var ofServer: Set<UInt32> = []
        /// The owners of all conditions in the index, including those of other results.
        private var owners: [UInt64: UserID] = [:]
        /// The owners of the results that the reading is for.
        private var waiting: [UInt64: UserID] = [:]
        private let mostSteps: Int
        /// Those to whom the shared results are shown, as of the beginning of the reading.
        private(set) var listeners: [UInt32: LiveListeners] = [:]
        /// Results whose conditions took too many steps for a record, which are no longer matched
        /// and have to end.
        let dear = NotedResults()
        /// Shared results that were not asked about a record, because nobody to whom they are shown
        /// may read it.
        let unheard = NotedResults()

        init(
            _ groups: [LiveGroup], in container: LiveContainer, seed: UInt64,
            _ settings: LiveSettings
        ) {
            mostSteps = settings.stepsPerChange
            // Only the waiting results are indexed: ten thousand of them cost one match per record.
            // If they are most of the container's results, the container's own index is used.
            // Indexing them again would take as much memory again, and the engine sends nothing
            // meanwhile.
            let isMost = 2 * groups.count >= container.resultGroups && container.own.isEmpty
            let isShared = isMost && groups.count >= settings.manyWaiting
            index = isShared ? container.results : SubscriptionIndex(seed: seed)
            asked = isShared ? Set(groups.map(\.number)) : nil
            grant = groups.first.flatMap { group in
                group.query.subscription.database == .public ? group.grant : nil
            }
            // The shared index also has conditions of other results, which may be too costly.
            for (number, group) in isShared ? container.groups : [:] {
                owners[UInt64(number)] = group.owner
                guard group.reader == nil, group.query.kind == .result else { continue }
                listeners[number] = container.listeners(of: group)
            }
            for group in groups {
                let serial = UInt64(group.number)
                if group.reader == nil, listeners[group.number] == nil {
                    listeners[group.number] = container.listeners(of: group)
                }
                if !isShared, own.insert(group), let indexed = try? LiveContainer.indexed(group) {
                    index.insert(indexed)
                }
                owners[serial] = group.owner
                waiting[serial] = group.owner
                if case .server? = group.reader { ofServer.insert(group.number) }
                let query = group.query
                guard query.start != nil || query.end != nil || query.firebase != nil else {
                    continue
                }
                orders[group.number] = container.order(of: query)
            }
        }

        /// Returns the record with its readers.
        func granted(_ record: ShadowRecord) -> LiveRecord {
            let readers = record.readers ?? grant?.readers(createdBy: record.created.userID)
            return LiveRecord(record, readers: readers)
        }

        /// Stops matching results that have ended, unless the index finds other results by them.
        func leaveOut(_ ended: Set<UInt32>) {
            for number in ended where !own.isFiled(number) {
                index.remove(serial: UInt64(number))
            }
        }

        /// Notes the results that a record belongs to.
        ///
        /// Results whose conditions take too many steps are matched no more, and the others are
        /// matched again.
        func find(_ record: LiveRecord, in place: RecordPlace, _ reading: inout Reading) {
            if record.isForSome { reading.namesReaders = true }
            for left in (0..<LiveSettings.questionsPerChange).reversed() {
                do throws(DearChange) {
                    let groups = try results(of: record, in: place)
                    if !groups.isEmpty {
                        reading.found.append(Found(record: record, groups: groups))
                    }
                    return
                } catch {
                    for serial in blamed(for: error, by: record.readers, isWhole: left == 1) {
                        index.remove(serial: serial)
                        let number = UInt32(truncatingIfNeeded: serial)
                        dear.note(own.all(foundBy: number).map { UInt64($0) })
                    }
                }
            }
            reading.isGivenUp = true
        }

        /// Returns the results to be matched no more because a record took too many steps, by the
        /// rule of ``LiveEngine/asking(in:_:of:)``.
        private func blamed(
            for change: DearChange, by readers: [String]?, isWhole: Bool
        ) -> [UInt64] {
            let blamed = change.blamed { owners[$0] }
            guard blamed.isEmpty || isWhole else { return blamed }
            let (gone, names) = (dear.all, ReaderNames(readers))
            let there = waiting.filter { serial, owner in
                !gone.contains(serial)
                    && (names.areEverybody || isHeard(serial, of: owner, by: names))
            }
            let user = blamed.first.flatMap { owners[$0] } ?? there.values.mostNamed
            return blamed + there.filter { $0.value == user }.keys
        }

        /// Returns whether a result that the reading is for is shown to a user who may read a
        /// record.
        private func isHeard(_ serial: UInt64, of owner: UserID, by names: ReaderNames) -> Bool {
            let number = UInt32(truncatingIfNeeded: serial)
            return listeners[number]?.include(anyOf: names)
                ?? (names.contains(owner) || ofServer.contains(number))
        }

        /// Returns which conditions may be evaluated on a record; `nil` if everybody may read it.
        ///
        /// The numbers of the shared ones among the others are added to `unheard`.
        private func audience(
            of record: LiveRecord, _ unheard: UnheardResults
        ) -> ((UInt64) -> Bool)? {
            guard record.isForSome, let readers = record.readers else { return nil }
            let names = ReaderNames(readers)
            return { serial in
                let number = UInt32(truncatingIfNeeded: serial)
                if own.isFiled(number) { return own.hasReader(among: names, of: number) }
                if listeners[number]?.include(anyOf: names) ?? false { return true }
                unheard.note(serial)
                return false
            }
        }

        /// Returns the numbers of the results that a record belongs to, ascending.
        private func results(
            of record: LiveRecord, in place: RecordPlace
        ) throws(DearChange) -> [UInt32] {
            let unheard = UnheardResults()
            defer { self.unheard.note(Array(unheard.serials)) }
            let found = try LiveContainer.results(
                of: record, in: place, by: index, mostSteps: mostSteps,
                among: audience(of: record, unheard))
            return own.results(found, readableBy: record.readers).filter { group in
                guard asked?.contains(group) ?? true else { return false }
                return orders[group].map { $0.admits($0.member(of: record)) } ?? true
            }
        }
    }
}
