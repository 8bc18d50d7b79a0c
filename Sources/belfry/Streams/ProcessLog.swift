import Logging
import RelayModel
import RelayServer
import Synchronization

/// The log of this process: where every logger writes, how, and from which level on.
///
/// Loggers are made before the configuration is read, so that the form and the level are looked up
/// for each line.
final class ProcessLog: Sendable {
    /// The one of this process.
    static let own = ProcessLog()

    /// The level from which on lines are written.
    let levels = LogLevels(now: World.real.now)
    private let isJSON = Atomic(false)

    /// How lines are written.
    var form: LogForm {
        get { isJSON.load(ordering: .relaxed) ? .json : .text }
        set { isJSON.store(newValue == .json, ordering: .relaxed) }
    }

    /// Says that every logger writes here.
    func bootstrap() {
        LoggingSystem.bootstrap { [self] in handler(label: $0) }
    }

    /// A logger's end.
    func handler(label: String) -> any LogHandler {
        ProcessLogHandler(log: self, label: label)
    }
}

/// One logger's end.
private struct ProcessLogHandler: LogHandler {
    let log: ProcessLog
    let label: String
    private var text: StreamLogHandler
    /// What this logger was set to; otherwise the process says.
    private var ownLevel: Logger.Level?

    init(log: ProcessLog, label: String) {
        self.log = log
        self.label = label
        text = StreamLogHandler(label: label, stream: OneLineStream())
        text.logLevel = .trace
    }

    var metadata: Logger.Metadata {
        get { text.metadata }
        set { text.metadata = newValue }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { text.metadataProvider }
        set { text.metadataProvider = newValue }
    }

    var logLevel: Logger.Level {
        get { ownLevel ?? log.levels.level }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { text[metadataKey: key] }
        set { text[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        switch log.form {
        case .text: text.log(event: event)
        case .json:
            var known = metadataProvider?.get() ?? [:]
            known.merge(metadata) { $1 }
            known.merge(event.metadata ?? [:]) { $1 }
            let line = LogLine(
                at: World.real.now(), level: event.level.rawValue, logger: label,
                message: "\(event.message)", metadata: known)
            OneLineStream.put(line.json)
        }
    }
}

/// One event as one JSON object.
struct LogLine {
    let at: Timestamp
    let level: String
    let logger: String
    let message: String
    let metadata: Logger.Metadata

    /// The members that every line has; a member of the event's own that is called like one of them
    /// gets an underscore.
    private static let own: Set<String> = ["at", "level", "logger", "message"]

    /// The line, with its end.
    ///
    /// What a viewer takes for the end of a line or for a change of direction stands as its escape,
    /// as in the other form.
    var json: String {
        var object: JSONObject = [
            "at": .string(at.iso8601), "level": .string(level), "logger": .string(logger),
            "message": .string(message),
        ]
        for (name, value) in metadata.sorted(by: { $0.key < $1.key }) {
            object[Self.own.contains(name) ? name + "_" : name] = Self.value(value)
        }
        return Self.escaped(JSONValue.object(object).text) + "\n"
    }

    private static func value(_ value: Logger.MetadataValue) -> JSONValue {
        switch value {
        case .string(let text): .string(text)
        case .stringConvertible(let value): number(value) ?? .string("\(value)")
        case .array(let values): .array(values.map { Self.value($0) })
        case .dictionary(let members):
            .object(
                JSONObject(
                    members.sorted { $0.key < $1.key }.map { ($0.key, Self.value($0.value)) }))
        }
    }

    /// What was logged as a number; a text of digits is a text, as the name of a record may be.
    private static func number(_ value: any CustomStringConvertible) -> JSONValue? {
        switch value {
        case let value as any BinaryInteger: Int64(exactly: value).map { .integer($0) }
        case let value as Double where value.isFinite: .number(value)
        default: nil
        }
    }

    /// JSON has nothing but ASCII outside of its texts, so that an escape may stand for whatever
    /// else is found.
    private static func escaped(_ text: String) -> String {
        guard !text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else { return text }
        var line = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    line += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            default: line.unicodeScalars.append(scalar)
            }
        }
        return line
    }
}
