import Logging
import RelayModel
import RelayServer
import Synchronization

/// The log of this process: the output of all loggers, its format and its level.
///
/// Loggers are created before the configuration is read, so format and level are looked up for each
/// line.
final class ProcessLog: Sendable {
    /// The log of this process.
    static let own = ProcessLog()

    /// The minimum level of written lines.
    let levels = LogLevels(now: World.real.now)
    private let isJSON = Atomic(false)

    /// The format of the lines.
    var form: LogForm {
        get { isJSON.load(ordering: .relaxed) ? .json : .text }
        set { isJSON.store(newValue == .json, ordering: .relaxed) }
    }

    /// Makes this the output of every logger.
    func bootstrap() {
        LoggingSystem.bootstrap { [self] in handler(label: $0) }
    }

    /// Returns the handler of a logger.
    func handler(label: String) -> any LogHandler {
        ProcessLogHandler(log: self, label: label)
    }
}

/// The handler of one logger.
private struct ProcessLogHandler: LogHandler {
    let log: ProcessLog
    let label: String
    private var text: StreamLogHandler
    /// The level that was set for this logger; `nil` means that of the process.
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

/// One event as a JSON object.
struct LogLine {
    let at: Timestamp
    let level: String
    let logger: String
    let message: String
    let metadata: Logger.Metadata

    /// The members of every line.
    ///
    /// If metadata has one of these names, an underscore is appended to it.
    private static let own: Set<String> = ["at", "level", "logger", "message"]

    /// The line, including its line end.
    ///
    /// Characters that a viewer takes for a line end or a change of direction are escaped, as in
    /// the text format.
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

    /// Returns a logged number.
    ///
    /// A text of digits stays a text, because it may be the name of a record.
    private static func number(_ value: any CustomStringConvertible) -> JSONValue? {
        switch value {
        case let value as any BinaryInteger: Int64(exactly: value).map { .integer($0) }
        case let value as Double where value.isFinite: .number(value)
        default: nil
        }
    }

    /// Escapes special characters.
    ///
    /// JSON has only ASCII outside of its strings, so such characters are always inside one, where
    /// an escape is allowed.
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
