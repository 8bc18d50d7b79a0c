import ChangeSources
import DequeModule
import RelayModel

/// What one line of a file says.
package struct FileLine: Sendable {
    /// Its number, which begins at 1.
    package let number: Int
    /// Its changes, or what is wrong with it.
    let changes: Result<[RecordChange], APIError>
}

/// Reads lines in the words of the preset `belfry`.
///
/// Pure.
struct FileLineReader: Sendable {
    let source: ChangeSource
    /// Changes that say no moment count as of it.
    let now: Timestamp

    init(at now: Timestamp) {
        guard let name = SourceName(rawValue: "file") else {
            preconditionFailure("a source name that is one")
        }
        source = ChangeSource(
            name: name, preset: .belfry, verification: SourceVerification(.none))
        self.now = now
    }

    /// Reads one line: a change, or a list of changes.
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

/// Has the lines of a file read beside what judges them, in their order.
///
/// They are read in blocks: one is read while the one before it is judged, and so a rehearsal works
/// on two processors at most.
package struct FileLines {
    private struct Text: Sendable {
        let number: Int
        let text: [UInt8]
    }

    /// Lines with which a block is full: handing it over costs little beside them.
    private static let mostLines = 256
    /// Bytes with which a block is full, however few lines they are.
    private static let mostBytes = 262_144

    private let reader: FileLineReader
    private var block: [Text] = []
    private var bytes = 0
    private var ahead: Deque<Task<[FileLine], Never>> = []

    init(_ reader: FileLineReader) {
        self.reader = reader
    }

    /// Takes the next line, which is not empty; returns those that are to be judged now.
    package mutating func add(_ text: [UInt8], _ number: Int) async -> [FileLine] {
        block.append(Text(number: number, text: text))
        bytes += text.count
        guard block.count >= Self.mostLines || bytes >= Self.mostBytes else { return [] }
        beginBlock()
        guard ahead.count > 1, let first = ahead.popFirst() else { return [] }
        return await first.value
    }

    /// The next lines that are to be judged, once there are no more; `nil` after the last.
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
