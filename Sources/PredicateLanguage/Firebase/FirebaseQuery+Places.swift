public import RelayModel

extension FirebaseQuery {
    /// Returns whether a child with the given order value and key lies within the bounds.
    ///
    /// The result is the same as that of ``predicate``. The limit is not considered.
    ///
    /// - Parameters:
    ///   - value: The value that the query orders by. It is ignored if the query orders by key.
    ///   - key: The child's key.
    /// - Returns: Whether the child is neither before the lower bound nor after the upper one.
    public func admits(_ value: FieldValue, key: String) -> Bool {
        let ends = [(start, Self.isAfter), (end, Self.isBefore)]
        return ends.allSatisfy { bound, isInside in
            guard let bound else { return true }
            guard ordering != .key else {
                guard case .string(let text) = bound.value else { return false }
                return isInside(Self.stand(FirebaseKey(key), FirebaseKey(text)), bound.isIncluded)
            }
            let value = FirebaseValue(value)
            let limit = FirebaseValue(bound.value)
            if kinds == .sameAsBound, value.kind != limit.kind { return false }
            let outcome = Self.stand(value, limit)
            guard outcome == 0, let name = bound.key else {
                return isInside(outcome, bound.isIncluded)
            }
            return isInside(Self.stand(FirebaseKey(key), FirebaseKey(name)), bound.isIncluded)
        }
    }

    private static func isAfter(_ outcome: Int, _ isIncluded: Bool) -> Bool {
        outcome > 0 || outcome == 0 && isIncluded
    }

    private static func isBefore(_ outcome: Int, _ isIncluded: Bool) -> Bool {
        outcome < 0 || outcome == 0 && isIncluded
    }

    private static func stand<Value: Comparable>(_ left: Value, _ right: Value) -> Int {
        left < right ? -1 : right < left ? 1 : 0
    }
}

extension FirebaseValue {
    /// The kinds that Wilddog distinguishes.
    ///
    /// True and false are of one kind.
    var kind: Rank { rank == .yes ? .no : rank }
}
