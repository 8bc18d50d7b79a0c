extension Preparation {
    /// What the language has: each dialect judges by its own rules.
    static let ofAllDialects = Preparation { comparison in
        switch comparison.rules {
        case .apple: nil
        case .realm: RealmComparison(comparison)
        case .minapp: MinappComparison(source: comparison)
        case .firebase: FirebaseComparison(source: comparison)
        }
    }
}
