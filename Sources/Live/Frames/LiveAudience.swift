package import RelayModel

/// Who of many is told a frame, and how.
///
/// Long lists of readers are looked up: to go through one for each member of a group would take the
/// product of both.
package struct LiveAudience {
    /// From how many members, and readers, on a list is looked up.
    private static let (many, long) = (8, 16)

    private let told: LiveGroupFrame
    private let readers: Names
    private let readersBefore: Names

    /// Names are bytes: two spellings of one letter are two users.
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

    /// The audience of a frame among `count` members.
    package init(_ told: LiveGroupFrame, of count: Int) {
        self.told = told
        readers = Names(told.readers, isLookedUp: count >= Self.many)
        readersBefore = Names(told.readersBefore, isLookedUp: count >= Self.many)
    }

    /// The form for one member; `nil` tells nothing.
    package func frame(for reader: LiveReader, on device: DeviceID?) -> LiveFrame? {
        told.frame(
            for: reader, on: device, mightRead: { readersBefore.have(reader) },
            mayRead: { readers.have(reader) })
    }
}
