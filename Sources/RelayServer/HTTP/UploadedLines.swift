import NIOCore
import RelayModel

/// A body of lines that is too long for memory, and is read while it arrives.
struct UploadedLines: Sendable {
    /// The parts of the body, which can be read once.
    let parts: any AsyncSequence<ByteBuffer, any Error> & Sendable
    /// The maximum size of one line in bytes.
    let longestLine: Int

    /// Passes each line with its number, from 1, to `body`, until `body` returns `false`.
    ///
    /// Empty lines are passed too, without bytes. Otherwise a million of them would go by without a
    /// check of the time limit and without a suspension.
    ///
    /// - Throws: The error 400 if the body is cut off, and 413 if a line is too long; and what
    ///   `body` throws.
    func read(_ body: (ArraySlice<UInt8>, _ number: Int) async throws -> Bool) async throws {
        try await read(parts, body)
    }

    private func read(
        _ parts: some AsyncSequence<ByteBuffer, any Error>,
        _ body: (ArraySlice<UInt8>, _ number: Int) async throws -> Bool
    ) async throws {
        var line: [UInt8] = []
        var number = 1
        var parts = parts.makeAsyncIterator()
        while let part = try await Self.next(&parts) {
            var rest = part.readableBytesView[...]
            while let newline = rest.firstIndex(of: UInt8(ascii: "\n")) {
                try append(rest[..<newline], to: &line, number)
                if try await !body(Self.isEmpty(line) ? [] : line[...], number) { return }
                line.removeAll(keepingCapacity: true)
                number += 1
                rest = rest[(newline + 1)...]
            }
            try append(rest, to: &line, number)
        }
        if !Self.isEmpty(line) { _ = try await body(line[...], number) }
    }

    /// Returns whether a line is empty, apart from the carriage return of a Windows line end.
    private static func isEmpty(_ line: [UInt8]) -> Bool {
        line.allSatisfy { $0 == UInt8(ascii: "\r") }
    }

    private func append(
        _ bytes: ByteBufferView, to line: inout [UInt8], _ number: Int
    ) throws(APIError) {
        guard line.count + bytes.count <= longestLine else {
            throw APIError(
                .quotaExceeded, "line \(number): it is longer than \(longestLine) bytes")
        }
        line.append(contentsOf: bytes)
    }

    private static func next(
        _ parts: inout some AsyncIteratorProtocol<ByteBuffer, any Error>,
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> ByteBuffer? {
        do {
            return try await parts.next(isolation: isolation)
        } catch  where !(error is CancellationError) {
            // The client went, or violates HTTP; this is not a failure of the relay.
            throw APIError(.badRequest, "the body was cut off")
        }
    }
}
