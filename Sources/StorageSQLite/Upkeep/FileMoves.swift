import Glibc

/// Renames that can be taken back together if one of them fails.
struct FileMoves {
    /// A rename.
    struct Move: Sendable, Hashable {
        let from: String
        let to: String
    }

    /// A rename that failed.
    struct Failure: Error, Sendable, Hashable {
        let move: Move
        /// The errno.
        let code: Int32
    }

    /// Renames a file; returns 0 or an errno.
    typealias Rename = @Sendable (_ from: String, _ to: String) -> Int32

    /// Renames a file on the disk.
    static let onDisk: Rename = { from, to in Glibc.rename(from, to) == 0 ? 0 : errno }

    private let rename: Rename
    private var done: [Move] = []

    init(by rename: @escaping Rename) {
        self.rename = rename
    }

    mutating func move(_ from: String, to: String) throws(Failure) {
        let move = Move(from: from, to: to)
        let code = rename(from, to)
        guard code == 0 else { throw Failure(move: move, code: code) }
        done.append(move)
    }

    /// Takes the renames back, the last one first, up to one that fails.
    ///
    /// - Returns: The renames that are left to do by hand, in their order.
    mutating func takeBack() -> [Move] {
        while let last = done.last {
            guard rename(last.to, last.from) == 0 else { break }
            done.removeLast()
        }
        return done.reversed().map { Move(from: $0.to, to: $0.from) }
    }
}
