package import RelayModel

/// Chooses the form of a frame for each of many members of a group.
///
/// Long lists of readers become sets, because scanning a list for each member would take the
/// product of both lengths.
package struct LiveAudience {
    /// The number of members, and of readers, from which a list becomes a set.
    private static let (many, long) = (8, 16)

    private let told: LiveGroupFrame
    private let readers: Names
    private let readersBefore: Names

    /// A list of readers, compared by bytes: two Unicode spellings of one letter are two users.
    private struct Names {
        private let list: [String]?
        private let lookup: Set<[UInt8]>?

        init(_ list: [String]?, isLookedUp: Bool) {
            self.list = list
            guard isLookedUp, let list, list.count >= LiveAudience.long,
                !list.contains(RecordChange.everybody)
            else {
                lookup = nil
                return
            }
            lookup = Set(list.map { Array($0.utf8) })
        }

        func have(_ reader: LiveReader) -> Bool {
            guard let lookup, case .user(let user) = reader else { return reader.isAmong(list) }
            return lookup.contains(Array(user.rawValue.utf8))
        }
    }

    /// Creates the audience of a frame in a group of `count` members.
    package init(_ told: LiveGroupFrame, of count: Int) {
        self.told = told
        readers = Names(told.readers, isLookedUp: count >= Self.many)
        readersBefore = Names(told.readersBefore, isLookedUp: count >= Self.many)
    }

    /// Returns the form for one member; `nil` if that member gets no frame.
    package func frame(for reader: LiveReader, on device: DeviceID?) -> LiveFrame? {
        told.frame(
            for: reader, on: device, mightRead: { readersBefore.have(reader) },
            mayRead: { readers.have(reader) })
    }
}
