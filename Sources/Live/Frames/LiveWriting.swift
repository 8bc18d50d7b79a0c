package import RelayModel
package import Storage

/// How records are written for clients: the form is that of the calls on records.
package protocol LiveWriting: Sendable {
    /// The record with the fields that `query` shows.
    func record(_ record: ShadowRecord, for query: LiveQuery) -> JSONObject
    /// What names a record, and nothing of what it holds.
    func identity(_ record: ShadowRecord, for query: LiveQuery) -> JSONObject
    /// How `by` names the device that made a change.
    func name(of origin: ChangeOrigin) -> String?
}

/// Bytes that go to clients as they are: one frame.
package final class LiveFrame: Sendable {
    /// What it is.
    package let type: String
    /// The token, of a frame that closes what came before it.
    package let token: String?
    /// In a frame about a set: its version, once all of it has been told; 0 until then.
    package let complete: Int64?
    /// The text, in two pieces: the second is that of many frames which one change made.
    package let head: [UInt8]
    package let rest: [UInt8]

    /// The text.
    package var bytes: [UInt8] { head + rest }

    /// How many bytes it has.
    package var count: Int { head.count + rest.count }

    /// Writes a frame.
    package init(_ object: JSONObject) {
        head = JSONValue.object(object).utf8
        rest = []
        if case .string(let type)? = object["type"] { self.type = type } else { type = "" }
        if case .string(let at)? = object["at"] { token = at } else { token = nil }
        switch (object["state"], object["version"]) {
        case ("complete", .integer(let version)?): complete = version
        case ("bootstrapping", _): complete = 0
        default: complete = nil
        }
    }

    /// A frame of this type that closes nothing, as it has been written.
    init(_ type: String, _ head: [UInt8], _ rest: [UInt8]) {
        self.type = type
        token = nil
        complete = nil
        self.head = head
        self.rest = rest
    }
}

/// What goes to the members of a group.
package struct LiveGroupFrame: Sendable {
    /// The group.
    package let group: UInt32
    /// For readers to whom all of it may be told.
    package let whole: LiveFrame?
    /// Who may read the record as it is now; `nil` is everybody.
    package var readers: [String]?
    /// Who might read it before; `nil` is everybody.
    package var readersBefore: [String]?
    /// For those who may read it only since.
    package var entered: LiveFrame?
    /// For those who may not read it any more.
    package var left: LiveFrame?
    /// Who made the change, if the group leaves that one out.
    package var suppressed: Suppressed?
    /// The change that it tells of, where it is one alone.
    package var position: LogPosition?
    /// Members that are not told it, because their queries have ended with one before it.
    package var except: Set<UInt64> = []

    /// A change that its own device, or user, is not told of.
    package struct Suppressed: Sendable {
        /// What is left out.
        package let suppression: OriginSuppression
        /// Who made it.
        package let origin: ChangeOrigin
    }

    /// Everybody is told the same.
    init(_ group: UInt32, _ whole: LiveFrame?) {
        self.group = group
        self.whole = whole
    }

    /// Says who may read the record, and might before: a list that names everybody is none, so that
    /// all are told the same at once.
    mutating func narrow(to readers: [String]?, before: [String]?) {
        func named(_ list: [String]?) -> [String]? {
            list.flatMap { $0.contains(RecordChange.everybody) ? nil : $0 }
        }
        (self.readers, readersBefore) = (named(readers), named(before))
    }

    /// The bytes of all its forms.
    package var bytes: Int {
        (whole?.count ?? 0) + (entered?.count ?? 0) + (left?.count ?? 0)
    }

    /// Whether who looks makes no difference.
    package var isForAll: Bool {
        readers == nil && readersBefore == nil && suppressed == nil && except.isEmpty
    }

    /// The form for one member; `nil` tells nothing.
    package func frame(for reader: LiveReader, on device: DeviceID?) -> LiveFrame? {
        frame(
            for: reader, on: device, mightRead: { reader.isAmong(readersBefore) },
            mayRead: { reader.isAmong(readers) })
    }

    func frame(
        for reader: LiveReader, on device: DeviceID?, mightRead: () -> Bool, mayRead: () -> Bool
    ) -> LiveFrame? {
        if let suppressed, suppressed.leavesOut(reader, device) { return nil }
        if readers == nil, readersBefore == nil { return whole }
        switch (mightRead(), mayRead()) {
        case (true, true): return whole
        case (false, true): return entered
        case (true, false): return left
        case (false, false): return nil
        }
    }
}

extension LiveGroupFrame.Suppressed {
    func leavesOut(_ reader: LiveReader, _ device: DeviceID?) -> Bool {
        guard case .user(let user) = reader else { return false }
        switch suppression {
        case .none: return false
        case .user: return origin.userID == user
        case .device:
            guard origin.userID == nil || origin.userID == user, let made = origin.deviceID,
                let device
            else { return false }
            return made.isOfSameClient(as: device)
        }
    }
}
