import RelayModel
import Storage

extension CostLimits {
    /// Returns these limits, replaced where a container sets its own.
    func narrowed(by bounds: CostBounds) -> CostLimits {
        var limits = self
        limits.perPredicate = bounds.perPredicate ?? perPredicate
        limits.perUser = bounds.perUser ?? perUser
        limits.perRecordType = bounds.perRecordType ?? perRecordType
        return limits
    }
}
