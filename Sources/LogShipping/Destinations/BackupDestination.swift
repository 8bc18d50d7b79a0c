// LogShipping: ships the log of the store's file to a folder or an S3-like store, and rebuilds a
// file from it.
//
// It knows segments and copies, but not their contents, which it gets from the store. Nothing here
// waits for the writer, and the writer waits for nothing here.

import NIOPosix

/// A place for backups: named objects that are written once.
package protocol BackupDestination: Sendable {
    /// The place, as the operator wrote it and without secrets.
    var place: String { get }

    /// Writes `bytes` under `name`, atomically and durably.
    ///
    /// An existing object stays. If it has the same bytes, the call succeeds; otherwise it throws
    /// ``DestinationFailure/Kind/taken``.
    func put(_ name: String, _ bytes: [UInt8]) async throws(DestinationFailure)

    /// Returns the bytes under `name`; `nil` if there are none.
    ///
    /// - Throws: ``DestinationFailure``, also if the object has more than `limit` bytes.
    func get(_ name: String, atMost limit: Int) async throws(DestinationFailure) -> [UInt8]?

    /// Returns the names that begin with `prefix`.
    func names(below prefix: String) async throws(DestinationFailure) -> [String]

    /// Removes the object under `name`, if it exists.
    func remove(_ name: String) async throws(DestinationFailure)

    /// Releases the resources. The destination must not be used afterwards.
    func close() async
}

/// An operation that a destination did not perform, and why.
package struct DestinationFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of failure, which determine what to do about them.
    package enum Kind: Sendable, Hashable {
        /// The destination does not answer, or says that it is temporarily unavailable.
        case away
        /// The destination refuses, and will refuse again until an operator changes something.
        case refused
        /// The name is taken by an object with other bytes.
        case taken
    }

    package let kind: Kind
    package let description: String

    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }
}

/// The maximum number of names in one destination.
///
/// A segment every ten seconds makes three million a year.
let maximumNames = 10_000_000

/// The maximum size of one written object, except a manifest: a part of a copy, or a segment with
/// its header and checksum.
let maximumShipped = 32 << 20

/// Runs blocking code on NIO's thread pool, so that it does not block Swift's cooperative threads.
func blocking<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
) async throws -> Value {
    try await NIOThreadPool.singleton.runIfActive(body)
}
