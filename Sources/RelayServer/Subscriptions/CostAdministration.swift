import RelayModel
import Storage

extension CostLimits {
    /// These limits, as far as a container does not set its own.
    func narrowed(by bounds: CostBounds) -> CostLimits {
        var limits = self
        limits.perPredicate = bounds.perPredicate ?? perPredicate
        limits.perUser = bounds.perUser ?? perUser
        limits.perRecordType = bounds.perRecordType ?? perRecordType
        return limits
    }
}
