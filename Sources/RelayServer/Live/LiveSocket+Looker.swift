import Live
import RelayModel

extension LiveSocket {
    /// Who looks, and with what.
    struct Looker {
        let reader: LiveReader
        let device: DeviceID?
    }

    /// Who looks; `nil` as long as that is not known.
    ///
    /// Then nothing may be told but what everybody may know: a client joins its groups while the
    /// `hello` that brings its set is still worked.
    var looker: Looker? {
        if known == nil {
            known = session.identity.map { Looker(reader: $0.reader, device: $0.device) }
        }
        return known
    }
}
