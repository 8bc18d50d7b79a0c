import FoundationEssentials
import Synchronization

/// Where the log goes: one line for one event, whatever clients, sources and systems wrote into it.
///
/// The escaping is at the very end of the way, so that no message, name or reason can go round it.
struct OneLineStream: TextOutputStream, Sendable {
    private static let turn = Mutex(())

    /// Writes one event.
    mutating func write(_ string: String) {
        Self.put(Self.line(string))
    }

    /// Writes a line that is one already.
    static func put(_ line: String) {
        turn.withLock { _ in
            // There is nobody to tell that there is nobody who listens.
            try? StandardStreams.write(Array(line.utf8), .error)
        }
    }

    /// `event` as one line: a control character, and whatever a viewer takes for the end of a line
    /// or for a change of direction, stands as its escape, as Swift writes it.
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
