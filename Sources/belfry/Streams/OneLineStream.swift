import FoundationEssentials
import Synchronization

/// The output of the log: one line for each event, whatever texts from clients, sources and systems
/// it contains.
///
/// Escaping is the last step of the output, so that no message, name or reason can bypass it.
struct OneLineStream: TextOutputStream, Sendable {
    private static let turn = Mutex(())

    /// Writes one event.
    mutating func write(_ string: String) {
        Self.put(Self.line(string))
    }

    /// Writes a complete line.
    static func put(_ line: String) {
        turn.withLock { _ in
            // If the standard error is closed, there is nowhere to report it.
            try? StandardStreams.write(Array(line.utf8), .error)
        }
    }

    /// Returns `event` as one line.
    ///
    /// Control characters, and characters that a viewer takes for a line end or a change of
    /// direction, are replaced by their Swift escapes.
    static func line(_ event: String) -> String {
        let content = event.hasSuffix("\n") ? event.dropLast() : event[...]
        let isPlain = content.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
        guard !isPlain else { return content + "\n" }
        var line = ""
        for scalar in content.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                line += scalar.escaped(asASCII: true)
            default: line.unicodeScalars.append(scalar)
            }
        }
        return line + "\n"
    }
}
