/// What is kept of a client of whom it is not known who it is: as little as possible.
enum StrangerBytes {
    /// Bytes of a stranger: room for credentials and the set of a large page.
    static let most = 256 * 1024
}
