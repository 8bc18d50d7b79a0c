import NIOCore
import RelayModel

/// A body of lines, longer than a request may be, that is read as it comes and never held whole.
struct UploadedLines: Sendable {
    /// The parts of the body, which can be read once.
    let parts: any AsyncSequence<ByteBuffer, any Error> & Sendable
    /// Bytes that one line may have.
    let longestLine: Int

    /// Hands each line to `body`, with its number, which begins at 1, until `body` says that it
    /// wants no more.
    ///
    /// One that is empty has no bytes, and is handed over too: of a million of them somebody has to
    /// notice that the time is over, and let others run.
    ///
    /// - Throws: 400 if the body is cut off, 413 if a line is too long; what `body` throws.
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

    /// Whether a line has nothing but its end, which is two bytes on Windows.
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
            // Its client went, or does not speak HTTP: no fault of the relay's own.
            throw APIError(.badRequest, "the body was cut off")
        }
    }
}
