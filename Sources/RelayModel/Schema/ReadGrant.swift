/// The users who may read the records of a type in the public database, according to the grants of
/// the schema.
///
/// Record calls, pushes and everything else that shows a record use this type, so that all of them
/// hide the same records.
public enum ReadGrant: Sendable, Hashable {
    /// Everyone, signed in or not.
    case world
    /// Every user who is signed in.
    case users
    /// The user who created the record.
    case creator
    /// No user: only a role has the grant, and the relay knows no members of roles, or no grant
    /// exists.
    case nobody

    /// Returns whether `user` may read a record that `creator` created; a `nil` user is not signed
    /// in, a `nil` creator is unknown.
    public func admits(_ user: UserID?, createdBy creator: UserID?) -> Bool {
        switch self {
        case .world: true
        case .users: user != nil
        case .creator: user != nil && user == creator
        case .nobody: false
        }
    }

    /// Returns the readers of a record that names none itself; `nil` means every user.
    public func readers(createdBy creator: UserID?) -> [String]? {
        switch self {
        case .world, .users: nil
        case .creator: creator.map { [$0.rawValue] } ?? []
        case .nobody: []
        }
    }
}

extension RecordTypeDefinition {
    /// The grant for records that name no readers themselves.
    public var readGrant: ReadGrant {
        if grants(.read, to: .world) { return .world }
        if grants(.read, to: .icloud) { return .users }
        return grants(.read, to: .creator) ? .creator : .nobody
    }
}

extension ContainerSchema {
    /// Whether the records of every type may be read by the same users as under another schema.
    ///
    /// Records of a type that is not there are read as those of one that has just been inferred.
    package func readsAlike(_ other: ContainerSchema) -> Bool {
        Set(recordTypes.keys).union(other.recordTypes.keys).allSatisfy {
            readGrant(of: $0) == other.readGrant(of: $0)
        }
    }

    private func readGrant(of type: RecordType) -> ReadGrant {
        recordTypes[type]?.readGrant ?? .world
    }
}

extension RecordChange {
    /// The word for everyone in a list of readers.
    public static let everybody = "world"

    /// The readers of a record whose source has readers for it, but has not sent them yet.
    ///
    /// The empty name is nobody's, and no source can name it. So the list hides the record until a
    /// change says who may read it, and can be told from an empty list that the source sent.
    package static let unsentReaders = [""]

    /// Returns whether a list of readers is that of a record whose readers were not sent yet.
    package static func areUnsent(_ readers: [String]?) -> Bool {
        isSame(readers, as: unsentReaders)
    }

    /// Returns whether `user` is in `readers`; the caller handles a missing list.
    ///
    /// Names compare by bytes, as those of ``ValidatedIdentifier`` do: two spellings of one letter
    /// are equal as Swift strings, but name two users.
    public static func names(_ user: UserID?, in readers: [String]) -> Bool {
        guard let name = user?.rawValue else { return readers.contains(everybody) }
        // Most names differ already as strings, which is the fastest check.
        return readers.contains { reader in
            reader == everybody || reader == name && reader.utf8.elementsEqual(name.utf8)
        }
    }

    /// Returns whether the readers of this change admit `user`.
    ///
    /// Without a list, everyone may read the public database, and the owner a private one; the
    /// index already checks the owner.
    public func mayRead(_ user: UserID?) -> Bool {
        readers.map { Self.names(user, in: $0) } ?? true
    }

    /// Returns whether `user` may know the record's state before an update.
    ///
    /// A user whom the change itself admitted must not learn the earlier fields through a condition
    /// on both images.
    public func mightRead(_ user: UserID?) -> Bool {
        readersBefore.map { Self.names(user, in: $0) } ?? true
    }

    /// Returns the readers who are in both lists.
    package static func common(_ readers: [String], _ others: [String]) -> [String] {
        if readers.contains(everybody) { return others }
        if others.contains(everybody) { return readers }
        // Both lists may be very long, and the writer waits for this function.
        let known = Set(others.map { Array($0.utf8) })
        return readers.filter { known.contains(Array($0.utf8)) }
    }

    /// Returns whether two lists name the same readers in the same order; `nil` means no list.
    public static func isSame(_ readers: [String]?, as others: [String]?) -> Bool {
        guard let readers, let others else { return readers == nil && others == nil }
        return readers.elementsEqual(others) { $0.utf8.elementsEqual($1.utf8) }
    }
}

/// A list of readers as a set, for checks of many users.
package struct ReaderNames: Sendable {
    /// The users in the list; `nil` if everyone is.
    package let users: Set<UserID>?

    /// Creates a set from a list; `nil` means no list, which admits everyone.
    package init(_ readers: [String]?) {
        guard let readers, !readers.contains(RecordChange.everybody) else {
            users = nil
            return
        }
        users = Set(readers.compactMap(UserID.init(rawValue:)))
    }

    /// Whether the list admits everyone.
    package var areEverybody: Bool { users == nil }

    /// Returns whether the list admits a user.
    package func contains(_ user: UserID) -> Bool { users?.contains(user) ?? true }
}
