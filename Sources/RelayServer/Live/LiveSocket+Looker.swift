import Live
import RelayModel

extension LiveSocket {
    /// The reader and the device behind a connection.
    struct Looker {
        let reader: LiveReader
        let device: DeviceID?
    }

    /// The reader and device; `nil` until the client is authenticated.
    ///
    /// Until then it may be sent only what everybody may see: a client joins groups while the
    /// `hello` with its set is still being worked.
    var looker: Looker? {
        if known == nil {
            known = session.identity.map { Looker(reader: $0.reader, device: $0.device) }
        }
        return known
    }
}
