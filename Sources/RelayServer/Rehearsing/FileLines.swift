import ChangeSources
import DequeModule
import RelayModel

/// The content of one line of a file.
package struct FileLine: Sendable {
    /// The number of the line, beginning at 1.
    package let number: Int
    /// The changes in the line, or the error in it.
    let changes: Result<[RecordChange], APIError>
}

/// Parses lines in the format of the preset `belfry`.
///
/// This is a pure value.
struct FileLineReader: Sendable {
    let source: ChangeSource
    /// The time of changes that do not give one.
    let now: Timestamp

    init(at now: Timestamp) {
        guard let name = SourceName(rawValue: "file") else {
            preconditionFailure("a source name that is one")
        }
        source = ChangeSource(
            name: name, preset: .belfry, verification: SourceVerification(.none))
        self.now = now
    }

    /// Parses one line: a change, or a list of changes.
    func line(_ number: Int, _ text: [UInt8]) -> FileLine {
        do throws(APIError) {
            return FileLine(number: number, changes: .success(try changes(text)))
        } catch {
            return FileLine(number: number, changes: .failure(error))
        }
    }

    private func changes(_ text: [UInt8]) throws(APIError) -> [RecordChange] {
        let batch: DecodedBatch
        do {
            batch = try source.decode(WebhookRequest(body: text, receivedAt: now))
        } catch {
            throw ErrorMapping(error).apiError
        }
        var changes: [RecordChange] = []
        for item in batch.items {
            switch item {
            case .change(let change, _):
                do throws(JSONContractError) {
                    try change.checkDepth()
                } catch {
                    throw ErrorMapping(error).apiError
                }
                changes.append(change)
            case .parked(let parked): throw APIError(.badRequest, parked.reason)
            case .refused(let path, let reason):
                throw APIError(.badRequest, path.isEmpty ? reason : "\(path): \(reason)")
            case .ignored, .ended: break
            }
        }
        return changes
    }
}

/// Parses the lines of a file concurrently with their judging, and returns them in order.
///
/// Lines are parsed in blocks: one block is parsed while the previous one is judged. So a rehearsal
/// uses at most two processors.
package struct FileLines {
    private struct Text: Sendable {
        let number: Int
        let text: [UInt8]
    }

    /// The number of lines in a full block; handing it over costs little in comparison.
    private static let mostLines = 256
    /// The number of bytes in a full block, even if it has only a few lines.
    private static let mostBytes = 262_144

    private let reader: FileLineReader
    private var block: [Text] = []
    private var bytes = 0
    private var ahead: Deque<Task<[FileLine], Never>> = []

    init(_ reader: FileLineReader) {
        self.reader = reader
    }

    /// Adds the next non-empty line; returns the lines that are to be judged now.
    package mutating func add(_ text: [UInt8], _ number: Int) async -> [FileLine] {
        block.append(Text(number: number, text: text))
        bytes += text.count
        guard block.count >= Self.mostLines || bytes >= Self.mostBytes else { return [] }
        beginBlock()
        guard ahead.count > 1, let first = ahead.popFirst() else { return [] }
        return await first.value
    }

    /// Returns the next lines to be judged after the last one was added; `nil` at the end.
    package mutating func rest() async -> [FileLine]? {
        if !block.isEmpty { beginBlock() }
        guard let first = ahead.popFirst() else { return nil }
        return await first.value
    }

    private mutating func beginBlock() {
        let lines = block
        let reader = self.reader
        block = []
        bytes = 0
        ahead.append(
            Task {
                lines.map { reader.line($0.number, $0.text) }
            })
    }
}
