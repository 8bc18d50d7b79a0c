extension Duration {
    /// How long a test waits for what must come.
    ///
    /// Every test may have to share its processors with all others and a slow machine: only what
    /// never comes is late.
    package static let patience = Duration.seconds(300)
}
