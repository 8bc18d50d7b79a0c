import Crypto
package import Live
package import RelayModel
package import Storage
import Synchronization

/// Writes records for live clients as the calls on records do.
package final class LiveRecordForm: LiveWriting {
    private let schemas = Mutex<[ContainerKey: ContainerSchema]>([:])
    private let store: UUIDBytes
    private let secret: SymmetricKey

    /// Creates the form; `secret` keeps the names of devices from being guessed.
    package init(store: UUIDBytes, secret: [UInt8]) {
        self.store = store
        self.secret = SymmetricKey(data: secret)
    }

    /// Notes the schema by which the records of a container are written.
    func note(_ schema: ContainerSchema, of container: ContainerKey) {
        schemas.withLock { $0[container] = schema }
    }

    package func record(_ record: ShadowRecord, for query: LiveQuery) -> JSONObject {
        var object = JSONObject()
        write(record, for: query, to: &object)
        return object
    }

    package func text(of record: ShadowRecord, for query: LiveQuery) -> [UInt8] {
        var writer = JSONObjectWriter()
        write(record, for: query, to: &writer)
        return writer.finish()
    }

    private func write<Object: JSONObjectBuilder>(
        _ record: ShadowRecord, for query: LiveQuery, to object: inout Object
    ) {
        var form = RecordJSON(numbers: numbers(query)).showing(query.desiredKeys)
        form.isPlain = query.form.isPlain
        // A record made from the log, such as the one before a change, has no known version.
        form.showsChangeTag = record.position != .start
        form.write(record, for: caller(query), to: &object)
    }

    package func identity(_ record: ShadowRecord, for query: LiveQuery) -> JSONObject {
        [
            "recordName": .string(record.recordID.recordName.rawValue),
            "recordType": .string(record.recordType.rawValue),
            "zoneID": caller(query).json(record.recordID.zoneID),
        ]
    }

    package func name(of origin: ChangeOrigin) -> String? {
        origin.deviceID.map { name(of: $0, origin.userID) }
    }

    /// Returns the name of a device in the member `by`.
    func name(of device: DeviceID, _ user: UserID?) -> String {
        let text = "\(user?.rawValue ?? "")\u{0}\(device.client)"
        let code = HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: secret)
        return Hexadecimal.encode(Array(code.prefix(8)))
    }

    private func numbers(_ query: LiveQuery) -> AnsweredNumbers {
        query.form.writesNumbersAsTexts ? .asStrings : .asNumbers
    }

    private func caller(_ query: LiveQuery) -> RecordCaller {
        let place = query.place
        return RecordCaller(
            place: place, user: nil, isServer: true,
            schema: schemas.withLock { $0[place.container] } ?? ContainerSchema(),
            redirectURL: "", store: store)
    }
}
