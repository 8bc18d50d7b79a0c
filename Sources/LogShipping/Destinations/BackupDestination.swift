//  LogShipping: the log of the store's file, shipped to a folder or an S3-like store, and a file
//  made of it again.
//
//  It knows what a segment and a copy are, and not what is in them. What it does not know it asks
//  the store: nothing here waits for the writer, and the writer waits for nothing here.

import NIOPosix

/// Where backups lie: names with bytes behind them, which are written once.
package protocol BackupDestination: Sendable {
    /// Where it is, as an operator wrote it; without secrets.
    var place: String { get }

    /// Writes `bytes` under `name`, whole or not at all; they are durable afterwards.
    ///
    /// What is there already stays: the same bytes are a success, others are
    /// ``DestinationFailure/Kind/taken``.
    func put(_ name: String, _ bytes: [UInt8]) async throws(DestinationFailure)

    /// The bytes under `name`; `nil` if there are none.
    ///
    /// - Throws: ``DestinationFailure`` also if there are more than `limit`.
    func get(_ name: String, atMost limit: Int) async throws(DestinationFailure) -> [UInt8]?

    /// The names that begin with `prefix`.
    func names(below prefix: String) async throws(DestinationFailure) -> [String]

    /// Removes what is under `name`, if it is there.
    func remove(_ name: String) async throws(DestinationFailure)

    /// Gives back what it holds; nothing is asked of it any more.
    func close() async
}

/// What a destination did not do, and why.
package struct DestinationFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// What can be done about it.
    package enum Kind: Sendable, Hashable {
        /// Nothing answers, or answers that it cannot now.
        case away
        /// It says no, and will say it again until somebody changes something.
        case refused
        /// Something else has the name.
        case taken
    }

    package let kind: Kind
    package let description: String

    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }
}

/// The most names of one destination: a segment every ten seconds for a year are three millions.
let maximumNames = 10_000_000

/// The most bytes of what is written at once, a manifest aside: a part of a copy, or a segment with
/// its header and its checksum.
let maximumShipped = 32 << 20

/// Runs what blocks on a thread where that keeps nobody else from going on.
func blocking<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
) async throws -> Value {
    try await NIOThreadPool.singleton.runIfActive(body)
}
