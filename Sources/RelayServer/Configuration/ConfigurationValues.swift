import Configuration
import FoundationEssentials
import RelayModel
import Storage

/// The settings as texts, from flags, environment variables and the file, in this order of
/// precedence.
package struct ConfigurationValues: Sendable {
    private var texts: [String: String] = [:]
    /// The names of the settings that were given.
    private var given: Set<String> = []
    private(set) var problems: [String] = []
    /// Remarks about variables that have no effect, although they probably should.
    package private(set) var remarks: [String] = []

    /// The flag and the environment variable that name the configuration file.
    private static let fileKey = ConfigurationKey("config", .text, "The configuration file.")

    /// Gathers the settings.
    ///
    /// - Parameters:
    ///   - arguments: The command line after the command's name.
    ///   - environment: The environment variables; those of the relay begin with `BELFRY_`.
    /// - Returns: The settings, with their problems.
    /// - Throws: ``ConfigurationError`` if the file cannot be read.
    package static func gather(
        arguments: [String], environment: [String: String]
    ) async throws -> ConfigurationValues {
        let flags = CommandLineArgumentsProvider(arguments: ["belfry"] + arguments)
        let variables = EnvironmentVariablesProvider(environmentVariables: environment)
            .prefixKeys(with: "belfry")
        var providers: [any ConfigProvider] = [flags, variables]
        var problems = problems(with: arguments)
        if let path = ConfigReader(providers: providers).string(forKey: "config") {
            guard !path.isEmpty else {
                throw ConfigurationError([
                    "config (\(fileKey.flag), \(fileKey.variable)): \"\" must be the name of a file"
                ])
            }
            let file = try Self.leaves(ofFile: path)
            problems += Self.problems(with: file, in: path)
            if problems.isEmpty { providers.append(Self.provider(of: file)) }
        }
        guard problems.isEmpty else { throw ConfigurationError(problems) }
        let reader = ConfigReader(providers: providers)
        var values = ConfigurationValues()
        values.remarks = unknownVariables(environment)
        for key in ConfigurationKeys.all { values.take(key, from: reader) }
        values.takeCredentials(environment)
        return values
    }

    /// Takes the credentials of an S3-compatible store from the variables of the AWS tools, unless
    /// the relay's own settings name some.
    private mutating func takeCredentials(_ environment: [String: String]) {
        let own = ["backup.s3.credentialsFile", "backup.s3.accessKeyID"]
        guard own.allSatisfy({ texts[$0] == nil }) else { return }
        let variables = [
            ("backup.s3.accessKeyID", "AWS_ACCESS_KEY_ID"),
            ("backup.s3.secretAccessKey", "AWS_SECRET_ACCESS_KEY"),
            ("backup.s3.sessionToken", "AWS_SESSION_TOKEN"),
        ]
        for (name, variable) in variables {
            if let text = environment[variable], !text.isEmpty { texts[name] = text }
        }
    }

    /// Returns a provider of the file's settings, with numbers as texts.
    ///
    /// The JSON provider of the configuration package is not used, because it depends on all of
    /// Foundation.
    private static func provider(of file: [Leaf]) -> InMemoryProvider {
        let values = file.map { leaf in
            let content: ConfigContent =
                if case .array(let list) = leaf.value {
                    .stringArray(list.map(text))
                } else {
                    .string(text(leaf.value))
                }
            return (
                AbsoluteConfigKey(ConfigKey(leaf.name)), ConfigValue(content, isSecret: false)
            )
        }
        return InMemoryProvider(values: Dictionary(values, uniquingKeysWith: { first, _ in first }))
    }

    private static func text(_ value: JSONValue) -> String {
        switch value {
        case .string(let text): text
        case .number(let number): Int64(exactly: number).map(String.init) ?? String(number)
        default: value.text
        }
    }

    private mutating func take(_ key: ConfigurationKey, from reader: ConfigReader) {
        guard let text = Self.text(key, reader) else {
            texts[key.name] = key.defaultText
            return
        }
        guard key.allows(text) else {
            // As JSON, so that a line break in the value does not begin a line of the message.
            let shown = key.isSecret ? "the value" : JSONValue.string(text.excerpt).text
            problems.append(
                "\(key.name) (\(key.flag), \(key.variable)): \(shown) must be \(key.rule)")
            return
        }
        texts[key.name] = text
        given.insert(key.name)
    }

    /// Returns the value as a text, whatever type it was given as, so that a given value is never
    /// ignored.
    private static func text(_ key: ConfigurationKey, _ reader: ConfigReader) -> String? {
        let name = ConfigKey(key.name)
        if key.kind == .list,
            let texts = reader.stringArray(forKey: name, isSecret: key.isSecret)
        {
            return texts.joined(separator: ",")
        }
        if let text = reader.string(forKey: name, isSecret: key.isSecret) { return text }
        if let number = reader.int(forKey: name, isSecret: key.isSecret) { return String(number) }
        if let number = reader.double(forKey: name, isSecret: key.isSecret) {
            return String(number)
        }
        // The command-line provider splits a text at its commas.
        return reader.stringArray(forKey: name, isSecret: key.isSecret)?.joined(separator: ",")
    }

    // MARK: What names no setting

    /// Returns the problems of arguments that would silently have no effect: a misspelt setting,
    /// one without a value, a repeated one, and a word that belongs to no setting.
    private static func problems(with arguments: [String]) -> [String] {
        let keys = Dictionary(
            (ConfigurationKeys.all + [fileKey]).map { ($0.flag, $0) },
            uniquingKeysWith: { first, _ in first })
        var problems: [String] = []
        var given: Set<String> = []
        var rest = arguments[...]
        while let word = rest.popFirst() {
            let flag = String(word.prefix { $0 != "=" })
            let hasValue = word != flag || rest.first?.hasPrefix("--") == false
            if word == flag, hasValue, flag.hasPrefix("--") { rest.removeFirst() }
            guard let key = keys[flag] else {
                problems.append(noSetting(flag, among: keys.keys.sorted()))
                continue
            }
            if !hasValue { problems.append("\(flag) has no value") }
            if !given.insert(flag).inserted, key.kind != .list {
                problems.append("\(flag) is given twice")
            }
        }
        return problems
    }

    private static func noSetting(
        _ name: String, in path: String? = nil, among known: [String]
    ) -> String {
        let place = path.map { " in \($0)" } ?? ""
        guard let meant = NearestWord.to(name, among: known) else {
            return "\(name)\(place) is not a setting; see docs/configuration.md"
        }
        return "\(name)\(place) is not a setting; did you mean \(meant)?"
    }

    /// Returns the variables with the relay's prefix that set nothing.
    ///
    /// They do not prevent the start, because other software sets such variables too. For example,
    /// Kubernetes does for every service that is named `belfry`.
    private static func unknownVariables(_ environment: [String: String]) -> [String] {
        let known = (ConfigurationKeys.all + [fileKey]).map(\.variable)
        return environment.keys.sorted().filter { name in
            name.hasPrefix("BELFRY_") && !known.contains(name) && !otherVariables.contains(name)
                && name != "BELFRY_CRASH_AT"
                && name != "BELFRY_PORT" && !name.hasPrefix("BELFRY_PORT_")
                && !name.hasPrefix("BELFRY_SERVICE_")
        }.prefix(maximumRemarks).map { noSetting($0, among: known + otherVariables) }
    }

    /// Variables that commands read and that are not settings of a relay.
    private static let otherVariables: Set<String> = [
        "BELFRY_SOURCE_URL", "BELFRY_SOURCE_SECRET",
    ]
    /// The maximum number of remarks; further ones add no information.
    private static let maximumRemarks = 20
    /// The maximum size of the file, in bytes.
    ///
    /// All settings at their longest are shorter, so a longer file is something else.
    private static let mostFileBytes = 1024 * 1024

    /// A value in the file that is not an object, with its full name: the names of the objects
    /// around it and its own.
    private typealias Leaf = (name: String, value: JSONValue)

    /// Returns the values in a file.
    private static func leaves(ofFile path: String) throws -> [Leaf] {
        let text: [UInt8]
        do {
            text = try WholeFile.bytes(at: path, atMost: mostFileBytes)
        } catch {
            let reason =
                error.isMissingFile
                ? "there is no such file"
                : FileManager.default.isFolder(path) ? "it is a folder" : error.systemReason
            throw ConfigurationError(["the file \(path) cannot be read: \(reason)"])
        }
        if let mark = marks.first(where: { text.starts(with: $0.bytes) }) {
            throw ConfigurationError(["the file \(path) \(mark.meaning)"])
        }
        let value: JSONValue
        do throws(JSONSyntaxError) {
            value = try JSONValue(parsing: text)
        } catch {
            throw ConfigurationError(["the file \(path) is \(error.description(in: text))"])
        }
        guard case .object = value else {
            throw ConfigurationError(["the file \(path) must contain a JSON object"])
        }
        return leaves(value, below: "")
    }

    /// Returns the problems of the file: unknown settings, and values of a wrong type.
    private static func problems(with file: [Leaf], in path: String) -> [String] {
        let keys = Dictionary(
            ConfigurationKeys.all.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var given: Set<String> = []
        return file.compactMap { name, value in
            guard let key = keys[name] else {
                // An empty group of settings is allowed.
                if value == [:], keys.keys.contains(where: { $0.hasPrefix("\(name).") }) {
                    return nil
                }
                return noSetting(name, in: path, among: ConfigurationKeys.all.map(\.name))
            }
            // `http.port` can be written as a member of that name, and as a member of the object
            // `http`.
            guard given.insert(name).inserted else { return "\(name) in \(path) is given twice" }
            guard let stranger = stranger(in: value) else { return nil }
            return "\(name) in \(path): \(stranger.text) must be \(key.rule)"
        }
    }

    /// Returns the part of a value that is neither a text nor a number; `nil` if the value is one,
    /// or a list of them.
    private static func stranger(in value: JSONValue) -> JSONValue? {
        switch value {
        case .integer, .number, .string: nil
        case .array(let elements):
            elements.first { element in
                if case .array = element { true } else { stranger(in: element) != nil }
            }
        case .bool, .null, .object: value
        }
    }

    /// Byte sequences that some editors write at the beginning of a file, and the resulting
    /// problem.
    private static let marks: [(bytes: [UInt8], meaning: String)] = [
        ([0xEF, 0xBB, 0xBF], "begins with a byte order mark: save it as UTF-8 without one"),
        ([0xFF, 0xFE], "is UTF-16: save it as UTF-8"),
        ([0xFE, 0xFF], "is UTF-16: save it as UTF-8"),
    ]

    private static func leaves(_ value: JSONValue, below path: String) -> [Leaf] {
        guard case .object(let object) = value, path.isEmpty || !object.members.isEmpty else {
            return [(path, value)]
        }
        return object.members.flatMap { member in
            leaves(member.value, below: path.isEmpty ? member.name : "\(path).\(member.name)")
        }
    }

    // MARK: What has no effect

    /// Sentences about settings that were given but have no effect; the relay logs them and starts
    /// anyway.
    package var idle: [String] { idle(.warned) }

    private func idle(_ weight: SettingNeed.Weight) -> [String] {
        var told: Set<String> = []
        return SettingNeed.all.flatMap { need in
            need.names.filter { name in
                given.contains(name) && !need.isMet(by: texts[need.other])
                    && told.insert(name).inserted && need.weight == weight
            }.map { need.sentence(of: $0) }
        }
    }

    /// Refuses a given setting whose effect depends on another one that is missing, if the relay
    /// would otherwise work on a store that was not meant.
    ///
    /// - Throws: ``ConfigurationError`` with all such settings.
    package func requireEffect() throws(ConfigurationError) {
        let refused = idle(.refused)
        guard refused.isEmpty else {
            throw ConfigurationError(
                refused.map { "\($0); set the other one too, or remove this one" })
        }
    }

    // MARK: Reading

    /// Returns the place of the store, for commands that need no other settings: the file, or the
    /// database instead.
    ///
    /// - Throws: ``ConfigurationError`` if a setting is invalid.
    package func store() throws(ConfigurationError) -> (path: String, url: String?, schema: String)
    {
        guard problems.isEmpty else { throw ConfigurationError(problems) }
        try requireEffect()
        let standard = RelayConfiguration.standard
        return (
            texts["storage.path"] ?? standard.storagePath, texts["storage.url"],
            texts["storage.schema"] ?? standard.storageSchema
        )
    }

    /// The schemas of all shards of the service; empty if the store is the only one.
    package var schemas: [String] {
        texts["nodes.schemas"].map { ConfigurationKey.elements($0) } ?? []
    }

    /// Returns the text of a setting, or its default; `nil` if there is neither.
    func text(of key: ConfigurationKey) -> String? { texts[key.name] }

    /// Sets all values in the configuration, and returns the problems that remain.
    func apply(to configuration: inout RelayConfiguration) -> [String] {
        ConfigurationKeys.all.flatMap { key in
            texts[key.name].map { key.apply($0, &configuration) } ?? []
        }
    }

    /// The settings, one a line, with secrets hidden.
    package var description: String {
        ConfigurationKeys.all.map { key in
            guard let text = texts[key.name] else { return "\(key.name) is not set" }
            return "\(key.name) = \(key.isSecret ? "(hidden)" : text)"
        }.joined(separator: "\n")
    }
}
