import RelayModel

/// Initialisers by the type of a setting's place in the configuration.
///
/// A setting's default is the value at its place in `RelayConfiguration.standard`, in the code
/// and in the documentation.
extension ConfigurationKey {
    /// The property of the configuration that a setting sets.
    typealias Place<Value> = any WritableKeyPath<RelayConfiguration, Value> & Sendable

    /// Creates a text setting with a default.
    init(_ name: String, text place: Place<String>, as kind: Kind = .text, _ summary: String) {
        self.init(name, kind, default: RelayConfiguration.standard[keyPath: place], summary) {
            $1[keyPath: place] = $0
            return []
        }
    }

    /// Creates an optional text setting.
    init(
        _ name: String, text place: Place<String?>, as kind: Kind = .text,
        secrecy: Secrecy = .open, _ summary: String
    ) {
        self.init(name, kind, secrecy: secrecy, summary) {
            $1[keyPath: place] = $0
            return []
        }
    }

    /// Creates a whole-number setting; the number is multiplied by `unit`.
    init<Number: FixedWidthInteger & Sendable>(
        _ name: String, number place: Place<Number>, _ range: ClosedRange<Int>, unit: Number = 1,
        _ summary: String
    ) {
        let standard = RelayConfiguration.standard[keyPath: place] / unit
        self.init(name, .integer(range), default: "\(standard)", summary) {
            $1[keyPath: place] = Number(Self.number($0)) * unit
            return []
        }
    }

    /// Creates a whole-number setting for which 0 means none.
    init(
        _ name: String, zeroForNone place: Place<Int?>, _ range: ClosedRange<Int>, unit: Int = 1,
        _ summary: String
    ) {
        let standard = (RelayConfiguration.standard[keyPath: place] ?? 0) / unit
        self.init(name, .integer(range), default: "\(standard)", summary) {
            let number = Self.number($0)
            $1[keyPath: place] = number == 0 ? nil : number * unit
            return []
        }
    }

    /// Creates an optional whole-number setting.
    init(
        _ name: String, number place: Place<Int?>, _ range: ClosedRange<Int>, _ summary: String
    ) {
        self.init(name, .integer(range), summary) {
            $1[keyPath: place] = Self.number($0)
            return []
        }
    }

    /// Creates a duration setting in whole units.
    init(
        _ name: String, time place: Place<Duration>, in unit: Duration, _ range: ClosedRange<Int>,
        _ summary: String
    ) {
        let standard = Self.count(RelayConfiguration.standard[keyPath: place], in: unit)
        self.init(name, .integer(range), default: "\(standard)", summary) {
            $1[keyPath: place] = unit * Self.number($0)
            return []
        }
    }

    /// Creates a duration setting in whole units for which 0 means none.
    init(
        _ name: String, zeroForNone place: Place<Duration?>, in unit: Duration,
        _ range: ClosedRange<Int>, _ summary: String
    ) {
        let standard = RelayConfiguration.standard[keyPath: place]
        let count = standard.map { Self.count($0, in: unit) } ?? 0
        self.init(name, .integer(range), default: "\(count)", summary) {
            let number = Self.number($0)
            $1[keyPath: place] = number == 0 ? nil : unit * number
            return []
        }
    }

    /// Creates a setting whose values are the words of an enumeration.
    init<Choice: RawRepresentable<String> & CaseIterable & SendableMetatype>(
        _ name: String, choice place: Place<Choice>, _ summary: String
    ) {
        let standard = RelayConfiguration.standard[keyPath: place]
        self.init(
            name, .choice(Choice.allCases.map(\.rawValue)), default: standard.rawValue, summary
        ) {
            if let choice = Choice(rawValue: $0) { $1[keyPath: place] = choice }
            return []
        }
    }

    /// Creates a setting that is `on` or `off`.
    init(_ name: String, isOn place: Place<Bool>, _ summary: String) {
        let standard = RelayConfiguration.standard[keyPath: place] ? "on" : "off"
        self.init(name, .choice(["off", "on"]), default: standard, summary) {
            $1[keyPath: place] = $0 == "on"
            return []
        }
    }

    /// Creates a setting that is a list of texts.
    init(_ name: String, list place: Place<[String]>, _ summary: String) {
        let standard = RelayConfiguration.standard[keyPath: place].joined(separator: ",")
        self.init(name, .list, default: standard.isEmpty ? nil : standard, summary) {
            $1[keyPath: place] = Self.elements($0)
            return []
        }
    }

    /// Returns the comma-separated elements of a list, without the white space around them.
    static func elements(_ text: String) -> [String] {
        text.split(separator: ",").map { element in
            let rest = element.drop(while: \.isWhitespace)
            let last = rest.lastIndex { !$0.isWhitespace }
            return last.map { String(rest[...$0]) } ?? ""
        }
    }

    private static func number(_ text: String) -> Int {
        guard let number = Int(text) else { preconditionFailure("\(text) was not checked") }
        return number
    }

    private static func count(_ time: Duration, in unit: Duration) -> Int { Int(time / unit) }
}

extension Duration {
    static let minute = seconds(60)
    static let hour = seconds(3600)
    static let day = seconds(86_400)
}

extension FixedWidthInteger {
    static var mebibyte: Self { 1_048_576 }
}
