extension Preparation {
    /// Creates the preparation for all dialects, each with its own rules.
    static func ofAllDialects(_ engine: any RegularExpressionEngine) -> Preparation {
        Preparation(
            foreign: { comparison in
                switch comparison.rules {
                case .apple: nil
                case .realm: RealmComparison(comparison)
                case .minapp: MinappComparison(comparison)
                case .firebase: FirebaseComparison(comparison)
                }
            }, engine: engine)
    }
}
