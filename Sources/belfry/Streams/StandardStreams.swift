import FoundationEssentials
import Glibc

/// The standard streams without buffering, so that input is available at once.
enum StandardStreams {
    /// The number of bytes that are read or written at once.
    static let chunkBytes = 64 * 1024

    /// A stream to write to.
    enum Target: Int32 {
        /// The standard output.
        case output = 1
        /// The standard error.
        case error = 2
    }

    /// Reads the available input, up to ``chunkBytes``; returns nothing at its end.
    ///
    /// - Throws: `POSIXError` if the input cannot be read.
    static func read() throws -> [UInt8] {
        try read(STDIN_FILENO, upTo: chunkBytes)
    }

    /// Reads everything up to the end.
    ///
    /// - Throws: `POSIXError` if the input cannot be read, or has more than `most` bytes.
    static func readAll(_ descriptor: Int32, atMost most: Int = .max) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let piece = try read(descriptor, upTo: chunkBytes)
            if piece.isEmpty { return bytes }
            bytes += piece
            guard bytes.count <= most else { throw POSIXError(.EFBIG) }
        }
    }

    /// Reads the available input, up to `limit` bytes; returns nothing at its end.
    ///
    /// - Throws: `POSIXError` if it cannot be read.
    static func read(_ descriptor: Int32, upTo limit: Int) throws -> [UInt8] {
        var chunk = [UInt8](repeating: 0, count: limit)
        while true {
            let count = unsafe Glibc.read(descriptor, &chunk, limit)
            if count >= 0 {
                chunk.removeLast(limit - count)
                return chunk
            }
            guard errno == EINTR else { throw POSIXError.last }
        }
    }

    /// Writes a line to the standard output at once, even if it is a pipe, because its reader waits
    /// for the line.
    ///
    /// Errors are ignored: the reader may be gone.
    static func say(_ line: String) {
        try? write(Array("\(line)\n".utf8), .output)
    }

    /// Flushes the buffer of `print`.
    ///
    /// Otherwise, an error such as a full disk would go unnoticed.
    ///
    /// - Throws: As ``write(_:_:)``.
    static func flush() throws {
        guard fflush(nil) != 0 else { return }
        throw POSIXError.last
    }

    /// Writes all of `bytes`.
    ///
    /// - Throws: `POSIXError` if the reader is gone or the device is full.
    static func write(_ bytes: [UInt8], _ target: Target) throws {
        try write(bytes, to: target.rawValue)
    }

    /// Writes all of `bytes`.
    ///
    /// - Throws: `POSIXError` if the reader is gone or the device is full.
    static func write(_ bytes: [UInt8], to descriptor: Int32) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withContiguousStorageIfAvailable {
                unsafe Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
            guard let count, count >= 0 else {
                if errno == EINTR { continue }
                throw POSIXError.last
            }
            rest = rest.dropFirst(count)
        }
    }
}

/// Splits a stream of bytes into lines of limited length.
struct LineBuffer {
    /// One line without its end.
    enum Line: Equatable {
        /// The bytes of the line.
        case whole([UInt8])
        /// The line was longer than ``LineBuffer/maximumLineBytes`` and has been dropped.
        case tooLong
    }

    /// The maximum length of a line, in bytes.
    ///
    /// Longer lines are dropped.
    static let maximumLineBytes = 8 * 1024 * 1024

    private var bytes: [UInt8] = []
    /// The index at which the first pending line begins.
    private var start = 0
    /// The index up to which the end of that line was searched for.
    private var searched = 0
    /// Whether the rest of the current line is dropped.
    private var isDropping = false
    private var isFinished = false
    /// Whether no line has been returned yet.
    private var isAtBeginning = true

    /// The byte order mark of UTF-8, which some editors write.
    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Adds bytes that were read.
    mutating func append(_ chunk: [UInt8]) {
        bytes.removeFirst(start)
        searched -= start
        start = 0
        bytes.append(contentsOf: chunk)
    }

    /// Marks the end of the input: the remaining bytes are the last line.
    mutating func finish() {
        isFinished = true
    }

    /// Returns the next line, or `nil` until more bytes are added.
    ///
    /// Blank lines are skipped.
    mutating func next() -> Line? {
        while let end = lineEnd() {
            var content = bytes[start..<end]
            if isAtBeginning, content.starts(with: Self.mark) {
                content = content.dropFirst(Self.mark.count)
            }
            isAtBeginning = false
            let wasDropping = isDropping
            isDropping = false
            start = min(end + 1, bytes.count)
            searched = start
            if wasDropping || content.count > Self.maximumLineBytes { return .tooLong }
            if content.contains(where: { $0 != 0x20 && $0 != 0x0D && $0 != 0x09 }) {
                return .whole(Array(content))
            }
        }
        if bytes.count - start > Self.maximumLineBytes {
            bytes.removeAll(keepingCapacity: true)
            start = 0
            searched = 0
            isDropping = true
        }
        return nil
    }

    private mutating func lineEnd() -> Int? {
        if let end = bytes[searched...].firstIndex(of: 0x0A) { return end }
        searched = bytes.count
        guard isFinished, start < bytes.count || isDropping else { return nil }
        return bytes.count
    }
}
