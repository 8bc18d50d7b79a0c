import FoundationEssentials
import Glibc
import RelayModel

/// The marks of commits whose frames are not in a segment yet.
///
/// They are in a file too, so that the times of the last acknowledged commits survive a killed
/// process. Each commit costs one write of about eighty bytes.
struct OpenMarks: ~Copyable {
    private let log: String
    private let path: String
    /// The file that the log must be; `nil` before the store is open.
    var own: FileIdentity?
    private var logFile: Int32 = -1
    private var file: Int32 = -1
    private(set) var isOn = false
    /// The salt of the log's generation that contains the last commit.
    private(set) var salt: [UInt8] = []
    /// The last frame of the last commit.
    private(set) var frames = 0
    private(set) var newest: LogMark?
    private var marks: [LogMark] = []

    init(log: String, path: String) {
        self.log = log
        self.path = path
    }

    deinit {
        if logFile >= 0 { close(logFile) }
        if file >= 0 { close(file) }
    }

    /// Begins with the marks that another process may have left, of one generation of the log.
    ///
    /// - Parameters:
    ///   - earlier: The last mark that is in a segment.
    ///   - frame: The last frame that is in a segment.
    /// - Throws: ``SpoolFailure`` if the file cannot be opened.
    mutating func open(after earlier: LogMark?, beyond frame: Int) throws(SpoolFailure) {
        newest = earlier
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        let lines = text.split(separator: "\n", omittingEmptySubsequences: true)
            .compactMap { line -> (salt: Substring, mark: LogMark)? in
                guard let end = line.firstIndex(of: " "),
                    let mark = LogMark(words: line[line.index(after: end)...])
                else { return nil }
                return (line[..<end], mark)
            }
        // Only the last of several generations can have frames that are in no segment.
        left = lines.filter { $0.salt == lines.last?.salt }.map { (String($0.salt), $0.mark) }
        try begin()
    }

    /// The marks that another process left, until the log shows which of them are valid.
    private var left: [(salt: String, mark: LogMark)] = []

    /// Begins without any marks.
    mutating func begin() throws(SpoolFailure) {
        if file >= 0 { close(file) }
        file = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SpoolFailure("\(path) cannot be opened", errno) }
        marks = []
        isOn = true
    }

    /// Stops noting commits, and drops the marks.
    mutating func end() {
        isOn = false
        marks = []
        left = []
        newest = nil
        forgetLog()
    }

    /// Closes the log, so that the salt is read again: the log may be another file from now on.
    mutating func forgetLog() {
        if logFile >= 0 { close(logFile) }
        logFile = -1
        salt = []
        frames = 0
    }

    /// Takes over the marks that another process left for frames of `generation` after `frame`.
    mutating func adopt(_ generation: LogGeneration, beyond frame: Int) {
        let salt = Self.digits(generation.salt)
        for (other, mark) in left where other == salt && mark.frame > frame {
            // A frame that was overwritten after a crash has two lines.
            marks.removeAll { $0.frame >= mark.frame }
            marks.append(mark)
            newest = mark
        }
        left = []
    }

    /// Notes a durable commit.
    mutating func note(frames: Int, commits: Int64, head: LogPosition, at now: Timestamp) {
        guard isOn, let salt = currentSalt() else { return }
        let moment = max(now, newest?.moment ?? now)
        let mark = LogMark(frame: frames, commits: commits, head: head, moment: moment)
        self.salt = salt
        self.frames = frames
        newest = mark
        marks.append(mark)
        let line = Array("\(Self.digits(salt)) \(mark.words)\n".utf8)
        _ = write(file, line, line.count)
    }

    /// Marks a commit that was found in the log without a mark: the process ended before it noted
    /// it.
    mutating func mark(_ frame: Int, at now: Timestamp) {
        guard marks.last.map({ $0.frame < frame }) ?? true else { return }
        let mark = LogMark(
            frame: frame, commits: newest?.commits ?? 0, head: newest?.head ?? LogPosition(0),
            moment: max(now, newest?.moment ?? now))
        newest = mark
        marks.append(mark)
    }

    /// Removes and returns the marks up to frame `last`, which will be in a segment.
    mutating func take(through last: Int) -> [LogMark] {
        let taken = marks.prefix { $0.frame <= last }
        marks.removeFirst(taken.count)
        return Array(taken)
    }

    /// Empties the file if every mark is in a segment.
    mutating func trim() {
        if marks.isEmpty, file >= 0 { _ = ftruncate(file, 0) }
    }

    private mutating func currentSalt() -> [UInt8]? {
        if logFile < 0 { logFile = Glibc.open(log, O_RDONLY | O_CLOEXEC) }
        guard logFile >= 0 else { return nil }
        guard LogFile.isOwn(logFile, own) else {
            forgetLog()
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: 8)
        return pread(logFile, &bytes, 8, 16) == 8 ? bytes : nil
    }

    private static func digits(_ bytes: [UInt8]) -> String {
        var number: UInt64 = 0
        for byte in bytes { number = number << 8 | UInt64(byte) }
        return String(number, radix: 16)
    }
}
