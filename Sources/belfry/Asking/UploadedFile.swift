import FoundationEssentials
import Glibc
import NIOCore
import RelayModel

/// A file that is streamed after a first line; `-` means the standard input.
struct UploadedFile: AsyncSequence, Sendable {
    /// The line that is sent before the file.
    let firstLine: JSONValue
    /// The file.
    let path: String

    /// Returns a refusal of a sent line with the position in the file instead.
    func placed(_ reason: String) -> String {
        let word = "line "
        guard reason.hasPrefix(word), let end = reason.firstIndex(of: ":"),
            let number = Int(reason[..<end].dropFirst(word.count)), number > 1
        else { return reason }
        return "\(path):\(number - 1)\(reason[end...])"
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        /// The number of bytes that are read and sent at once.
        private static let portion = 262_144
        /// The number of bytes between progress messages.
        private static let step = 32 * 1024 * 1024

        private var first: JSONValue?
        private let path: String
        private var source: FileStream?
        private var isOpen = false
        private var sent = 0

        init(_ file: UploadedFile) {
            first = file.firstLine
            path = file.path
        }

        mutating func next() async throws -> ByteBuffer? {
            if let line = first.take() {
                return ByteBuffer(bytes: line.utf8 + [UInt8(ascii: "\n")])
            }
            if !isOpen { try open() }
            let data = try read()
            guard !data.isEmpty else { return nil }
            sent += data.count
            if sent / Self.step > (sent - data.count) / Self.step {
                let line = "(\(sent >> 20) MiB sent so far)\n"
                try? StandardStreams.write(Array(line.utf8), .error)
            }
            return ByteBuffer(bytes: Self.unmarked(data, isFirst: sent == data.count))
        }

        /// Returns the next portion.
        ///
        /// A read error is reported as a failure of the file, not of the relay.
        private func read() throws -> [UInt8] {
            let data: [UInt8]
            do {
                data =
                    try source?.read(upTo: Self.portion)
                    ?? StandardStreams.read(STDIN_FILENO, upTo: Self.portion)
            } catch {
                throw InputFile.failure(error, path)
            }
            guard sent > 0 || !InputFile.isUTF16(data) else { throw InputFile.utf16(path) }
            return data
        }

        /// Returns a portion without the byte order mark at the beginning of the file.
        private static func unmarked(_ data: [UInt8], isFirst: Bool) -> ArraySlice<UInt8> {
            isFirst && data.starts(with: InputFile.mark) ? data.dropFirst(3) : data[...]
        }

        private mutating func open() throws {
            do {
                if path != "-" { source = try FileStream(reading: path) }
                isOpen = true
            } catch {
                throw InputFile.failure(error, path)
            }
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
