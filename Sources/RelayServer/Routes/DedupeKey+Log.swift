import ChangeSources
import RelayModel

extension RelayModel.DedupeKey {
    /// The key of the decoding room as the log knows keys.
    ///
    /// A key that the mapping computes holds as long as a sender's own ID does; the prefix keeps
    /// the two apart.
    init(_ key: ChangeSources.DedupeKey) {
        switch key.kind {
        case .position: self.init(kind: .position, text: key.text, digest: key.digest)
        case .delivery: self.init(kind: .delivery, text: key.text, digest: key.digest)
        case .expression:
            self.init(kind: .delivery, text: "expression:\(key.text)", digest: key.digest)
        case .content: self.init(kind: .content, text: key.text, digest: key.digest)
        }
    }
}
