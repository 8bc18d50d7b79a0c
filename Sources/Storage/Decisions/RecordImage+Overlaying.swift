package import RelayModel

extension RecordTrace {
    /// Creates the trace of a stamp for use in a change.
    package init(_ stamp: RecordStamp) {
        self.init(at: stamp.at, userID: stamp.userID)
    }
}

extension RecordImage {
    /// Returns this image with the fields of `other` replacing its own.
    package func overlaid(with other: RecordImage?) -> RecordImage {
        guard let other else { return self }
        if other.completeness == .full { return other }
        return RecordImage(
            fields.merging(other.fields) { _, later in later }, completeness: completeness)
    }
}
