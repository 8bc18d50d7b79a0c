import RelayModel

/// The readers to whom a group is shown.
struct LiveListeners: Sendable {
    private var hasServer = false
    private var users: Set<UserID> = []

    init(_ readers: some Sequence<LiveReader>) {
        for reader in readers {
            switch reader {
            case .server: hasServer = true
            case .user(let user): users.insert(user)
            }
        }
    }

    /// Returns whether one of them is among the users who may read a record.
    ///
    /// It takes as long as the shorter of the two lists.
    func include(anyOf names: ReaderNames) -> Bool {
        if hasServer { return true }
        guard let named = names.users else { return !users.isEmpty }
        return named.count < users.count
            ? named.contains { users.contains($0) } : users.contains { named.contains($0) }
    }

    /// Returns whether all of them are among others.
    func areAmong(_ others: LiveListeners) -> Bool {
        (!hasServer || others.hasServer) && users.isSubset(of: others.users)
    }
}

extension LiveContainer {
    /// Returns the readers to whom a group is shown, or will be.
    func listeners(of group: LiveGroup) -> LiveListeners {
        if let reader = group.reader { return LiveListeners([reader]) }
        let clients = group.clients.union(group.waiting.map(\.client))
        return LiveListeners(clients.compactMap { readers[$0] })
    }

    /// Returns whether any of the groups that an index finds by this number is shown to one of the
    /// users who may read a record.
    private func isHeard(_ number: UInt32, by names: ReaderNames) -> Bool {
        if own.isFiled(number) { return own.hasReader(among: names, of: number) }
        return groups[number].map { isShown($0, to: names) } ?? false
    }

    /// Returns whether a group is shown to one of the users who may read a record.
    private func isShown(_ group: LiveGroup, to names: ReaderNames) -> Bool {
        switch group.reader {
        case .server?: return true
        case .user(let user)?: return names.contains(user)
        case nil: break
        }
        return group.clients.contains { isReader($0, names) }
            || group.waiting.contains { isReader($0.client, names) }
    }

    /// Returns those of some groups that are shown to a user who may read a record.
    func heard(_ groups: [LiveGroup], by readers: [String]?) -> [LiveGroup] {
        let names = ReaderNames(readers)
        guard !names.areEverybody else { return groups }
        return groups.filter { isShown($0, to: names) }
    }

    /// Returns those of some groups that are shown to a user who may read what was changed, before
    /// or after the change.
    func heard(_ groups: [LiveGroup], toldOf change: RecordChange) -> [LiveGroup] {
        let (later, earlier) = (
            ReaderNames(change.readers), ReaderNames(change.readersBefore ?? change.readers)
        )
        guard !later.areEverybody, !earlier.areEverybody else { return groups }
        return groups.filter { isShown($0, to: later) || isShown($0, to: earlier) }
    }

    private func isReader(_ client: UInt64, _ names: ReaderNames) -> Bool {
        switch readers[client] {
        case .server: true
        case .user(let user): names.contains(user)
        case nil: false
        }
    }

    /// Returns which conditions may be evaluated on an image of a record, by the numbers of their
    /// groups; `nil` if everybody may read it.
    ///
    /// The numbers of the others are added to `unheard`.
    func audience(
        of readers: [String]?, _ unheard: UnheardResults
    ) -> ((UInt64) -> Bool)? {
        guard let readers, !readers.contains(RecordChange.everybody) else { return nil }
        let names = ReaderNames(readers)
        return { serial in
            let number = UInt32(truncatingIfNeeded: serial)
            if self.isHeard(number, by: names) { return true }
            unheard.note(serial)
            return false
        }
    }

    /// Keeps shared groups for those to whom they are shown now, because they were not asked about
    /// a record that others may read.
    func close(_ serials: some Sequence<UInt64>) {
        for serial in serials {
            guard let group = groups[UInt32(truncatingIfNeeded: serial)], group.reader == nil,
                byIdentity[group.identity] === group
            else { continue }
            byIdentity[group.identity] = nil
        }
    }
}

extension LiveEngine {
    /// Ends those of these results, which a reading did not ask about some record, that others have
    /// joined since `known`: they may be the ones who may read it.
    func end(
        _ unheard: Set<UInt64>, joinedSince known: [UInt32: LiveListeners],
        in container: LiveContainer
    ) {
        for serial in unheard.sorted() {
            let number = UInt32(truncatingIfNeeded: serial)
            guard let group = container.groups[number], let listeners = known[number],
                !container.listeners(of: group).areAmong(listeners)
            else { continue }
            end(group, .unasked, in: container)
        }
    }
}
