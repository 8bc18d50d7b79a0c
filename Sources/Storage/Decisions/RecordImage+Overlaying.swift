package import RelayModel

extension RecordTrace {
    /// What a change tells of a stamp.
    package init(_ stamp: RecordStamp) {
        self.init(at: stamp.at, userID: stamp.userID)
    }
}

extension RecordImage {
    /// This image, with what `other` says in the place of what it says itself.
    package func overlaid(with other: RecordImage?) -> RecordImage {
        guard let other else { return self }
        if other.completeness == .full { return other }
        return RecordImage(
            fields.merging(other.fields) { _, later in later }, completeness: completeness)
    }
}
