package import RelayModel
package import Storage

/// Writes records for live clients, in the form of the calls on records.
package protocol LiveWriting: Sendable {
    /// The record with the fields that `query` shows.
    func record(_ record: ShadowRecord, for query: LiveQuery) -> JSONObject
    /// The text of the same, in UTF-8, for frames that show the record as it is.
    func text(of record: ShadowRecord, for query: LiveQuery) -> [UInt8]
    /// The members that identify a record, without its fields.
    func identity(_ record: ShadowRecord, for query: LiveQuery) -> JSONObject
    /// The name of the device that made a change, as the member `by` has it; `nil` for a change
    /// that no device made.
    func name(of origin: ChangeOrigin) -> String?
}

extension LiveWriting {
    package func text(of record: ShadowRecord, for query: LiveQuery) -> [UInt8] {
        JSONValue.object(self.record(record, for: query)).utf8
    }
}

/// One frame, as the bytes that are sent to clients.
package final class LiveFrame: Sendable {
    /// The member `type`.
    package let type: String
    /// The token of an `at` frame.
    package let token: String?
    /// In a `state` frame: the set's version once it is complete, and 0 before.
    package let complete: Int64?
    /// The text in two pieces, of which the frames of one change share the second.
    package let head: [UInt8]
    package let rest: [UInt8]

    /// The whole text.
    package var bytes: [UInt8] { head + rest }

    /// The number of bytes.
    package var count: Int { head.count + rest.count }

    /// Creates a frame from its members.
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

    /// Creates a frame, other than `at` and `state`, from its text.
    init(_ type: String, _ head: [UInt8], _ rest: [UInt8]) {
        self.type = type
        token = nil
        complete = nil
        self.head = head
        self.rest = rest
    }
}

/// The frame for the members of a group, in a form for each kind of reader.
package struct LiveGroupFrame: Sendable {
    /// The number of the group.
    package let group: UInt32
    /// The form for users who may read the record before and after the change.
    package let whole: LiveFrame?
    /// The users who may read the record after the change; `nil` means everybody.
    package var readers: [String]?
    /// The users who could read the record before the change; `nil` means everybody.
    package var readersBefore: [String]?
    /// The form for users who can read the record only since the change.
    package var entered: LiveFrame?
    /// The form for users who can no longer read the record.
    package var left: LiveFrame?
    /// The change's origin, if the query leaves out the device or user that made it.
    package var suppressed: Suppressed?
    /// The position of the change, if the frame is about a single one.
    package var position: LogPosition?
    /// Members that do not get the frame, because their queries ended at an earlier one.
    package var except: Set<UInt64> = []

    /// The origin of a change, which does not get the frame itself.
    package struct Suppressed: Sendable {
        /// Whether the device or all devices of the user are left out.
        package let suppression: OriginSuppression
        /// The device and user that made the change.
        package let origin: ChangeOrigin
    }

    /// Creates a frame that is the same for all members.
    init(_ group: UInt32, _ whole: LiveFrame?) {
        self.group = group
        self.whole = whole
    }

    /// Sets the readers after and before the change.
    ///
    /// A list that names everybody becomes `nil`, so that all members share one frame.
    mutating func narrow(to readers: [String]?, before: [String]?) {
        func named(_ list: [String]?) -> [String]? {
            list.flatMap { $0.contains(RecordChange.everybody) ? nil : $0 }
        }
        (self.readers, readersBefore) = (named(readers), named(before))
    }

    /// The number of bytes of all forms together.
    package var bytes: Int {
        (whole?.count ?? 0) + (entered?.count ?? 0) + (left?.count ?? 0)
    }

    /// Whether all members get the same frame.
    package var isForAll: Bool {
        readers == nil && readersBefore == nil && suppressed == nil && except.isEmpty
    }

    /// Returns the form for one member; `nil` if that member gets no frame.
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
