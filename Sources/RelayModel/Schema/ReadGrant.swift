/// Who may read the records of a type in the public database, by the grants of the schema.
///
/// Calls on records, pushes and everything else that shows a record ask here, so that what one
/// keeps back no other shows.
public enum ReadGrant: Sendable, Hashable {
    /// Everybody, signed in or not.
    case world
    /// Everybody who is signed in.
    case users
    /// Who created the record.
    case creator
    /// No user: a role has it, of which no user is known to be a member, or nobody has.
    case nobody

    /// Whether it lets `user` read a record that `creator` created; `nil` is nobody who is known.
    public func admits(_ user: UserID?, createdBy creator: UserID?) -> Bool {
        switch self {
        case .world: true
        case .users: user != nil
        case .creator: user != nil && user == creator
        case .nobody: false
        }
    }

    /// The readers of a record that names none, among users; `nil` for every user.
    public func readers(createdBy creator: UserID?) -> [String]? {
        switch self {
        case .world, .users: nil
        case .creator: creator.map { [$0.rawValue] } ?? []
        case .nobody: []
        }
    }
}

extension RecordTypeDefinition {
    /// Who may read the records that name no readers.
    public var readGrant: ReadGrant {
        if grants(.read, to: .world) { return .world }
        if grants(.read, to: .icloud) { return .users }
        return grants(.read, to: .creator) ? .creator : .nobody
    }
}

extension RecordChange {
    /// The word in a list of readers for everybody.
    public static let everybody = "world"

    /// Whether `user` is among `readers`; a missing list is none of this question's business.
    ///
    /// Names are bytes, as those of ``ValidatedIdentifier`` are: two spellings of one letter are
    /// equal as texts, and two users.
    public static func names(_ user: UserID?, in readers: [String]) -> Bool {
        guard let name = user?.rawValue else { return readers.contains(everybody) }
        // Nearly all differ as texts already, which is seen soonest.
        return readers.contains { reader in
            reader == everybody || reader == name && reader.utf8.elementsEqual(name.utf8)
        }
    }

    /// Whether the read rule of this change lets `user` know of it.
    ///
    /// Without a rule everybody may read the public database, and the owner a private one, which
    /// the index has seen to.
    public func mayRead(_ user: UserID?) -> Bool {
        readers.map { Self.names(user, in: $0) } ?? true
    }

    /// Whether `user` may know what the record was before an update.
    ///
    /// Who was let in by the change itself must not learn by a condition on both images what was
    /// there before.
    public func mightRead(_ user: UserID?) -> Bool {
        readersBefore.map { Self.names(user, in: $0) } ?? true
    }

    /// The readers who are in both lists.
    package static func common(_ readers: [String], _ others: [String]) -> [String] {
        if readers.contains(everybody) { return others }
        if others.contains(everybody) { return readers }
        // Both may be very long, and the writer waits for this.
        let known = Set(others.map { Array($0.utf8) })
        return readers.filter { known.contains(Array($0.utf8)) }
    }

    /// Whether two lists name the same readers in the same order; `nil` is no list.
    public static func isSame(_ readers: [String]?, as others: [String]?) -> Bool {
        guard let readers, let others else { return readers == nil && others == nil }
        return readers.elementsEqual(others) { $0.utf8.elementsEqual($1.utf8) }
    }
}

/// A list of readers, for whoever asks of many users: it is looked up, and not gone through for
/// each of them.
package struct ReaderNames: Sendable {
    /// `nil` if everybody is among them.
    private let users: Set<UserID>?

    /// Takes the names of a list; `nil` is no list, and lets everybody in.
    package init(_ readers: [String]?) {
        guard let readers, !readers.contains(RecordChange.everybody) else {
            users = nil
            return
        }
        users = Set(readers.compactMap(UserID.init(rawValue:)))
    }

    /// Whether a user is among them.
    package func contains(_ user: UserID) -> Bool { users?.contains(user) ?? true }
}
