extension Duration {
    /// The time limit of a test that waits for something.
    ///
    /// It is generous, because a test may share a slow machine's processors with all others. Only
    /// a wait for something that never comes should reach it.
    package static let patience = Duration.seconds(300)
}
