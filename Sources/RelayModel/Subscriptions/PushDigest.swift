/// Collects what fires during a span of time, and tells it in one push at the end.
public struct PushDigest: Sendable, Hashable {
    /// How long to wait for further deliveries after the first, in seconds.
    public var seconds: Int64
    /// The title for several deliveries; `nil` keeps the subscription's own.
    public var title: DigestTemplate?
    /// The text for several deliveries; `nil` keeps the subscription's own.
    public var alertBody: DigestTemplate?
    /// The key of a localised text; overrides ``alertBody``.
    public var alertLocalizationKey: String?
    /// The arguments of the localised text.
    public var alertLocalizationArgs: [DigestTemplate] = []

    /// Whether any text replaces the subscription's own.
    public var hasTexts: Bool {
        title != nil || alertBody != nil || alertLocalizationKey != nil
    }

    /// Reads the wire form.
    ///
    /// - Throws: ``JSONContractError`` at the first invalid member.
    public init(json: JSONValue, path: String) throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly([
            "seconds", "title", "alertBody", "alertLocalizationKey", "alertLocalizationArgs",
        ])
        seconds = try reader.number("seconds", in: PushThrottle.spans)
        title = try reader.template("title")
        alertBody = try reader.template("alertBody")
        alertLocalizationKey = try reader.text("alertLocalizationKey")
        let arguments = try reader.strings("alertLocalizationArgs") ?? []
        guard arguments.count <= Limits.maximumLocalizationArguments else {
            throw reader.failure(
                "alertLocalizationArgs", "more than \(Limits.maximumLocalizationArguments) texts")
        }
        for (index, text) in arguments.enumerated() {
            alertLocalizationArgs.append(
                try DigestTemplate(
                    text, path: reader.path(of: "alertLocalizationArgs[\(index)]")))
        }
        guard arguments.isEmpty || alertLocalizationKey != nil else {
            throw reader.failure(
                "alertLocalizationArgs", "requires alertLocalizationKey, whose text it fills")
        }
    }

    /// The wire form.
    public var json: JSONValue {
        var object: JSONObject = ["seconds": .integer(seconds)]
        object.set("title", title?.source)
        object.set("alertBody", alertBody?.source)
        object.set("alertLocalizationKey", alertLocalizationKey)
        object.set("alertLocalizationArgs", alertLocalizationArgs.map(\.source))
        return .object(object)
    }
}

/// A text with placeholders: `{count}` for the number of deliveries that are told together, and
/// `{name}` for a field of the newest.
///
/// `{{` and `}}` stand for braces.
public struct DigestTemplate: Sendable, Hashable {
    /// A part of a template.
    public enum Part: Sendable, Hashable {
        /// Literal text.
        case text(String)
        /// The number of deliveries that are told together.
        case count
        /// The value of a field of the newest record.
        case field(String)
    }

    /// The template as it was written.
    public let source: String
    /// The parts, in order.
    public let parts: [Part]

    /// The maximum number of placeholders in one template.
    private static let mostPlaces = 16

    /// The names of the fields in the template, in order.
    public var fields: [String] {
        parts.compactMap { if case .field(let name) = $0 { name } else { nil } }
    }

    /// Reads a template.
    ///
    /// - Throws: ``JSONContractError`` that names the invalid character's position.
    public init(_ source: String, path: String) throws(JSONContractError) {
        var parts: [Part] = []
        var text = ""
        // By scalars, because a brace may combine with the scalar after it into one character, as
        // `{count}` and U+20E3 (the enclosing keycap) do.
        let characters = Array(source.unicodeScalars)
        var index = 0
        var places = 0
        func failure(_ reason: String) -> JSONContractError {
            JSONContractError(path: path, reason: "character \(index + 1): \(reason)")
        }
        while index < characters.count {
            let character = characters[index]
            let isDouble = index + 1 < characters.count && characters[index + 1] == character
            switch character {
            case "{" where isDouble, "}" where isDouble:
                text.unicodeScalars.append(character)
                index += 2
            case "}":
                throw failure(
                    "a closing brace without an opening one; write }} for the brace itself")
            case "{":
                guard let end = characters[index...].firstIndex(of: "}") else {
                    throw failure("a brace that is not closed; write {{ for the brace itself")
                }
                let inner = characters[index + 1..<end]
                let name = String(String.UnicodeScalarView(inner))
                guard name.isPlainName(upTo: Limits.maximumNameBytes), !inner.contains("{") else {
                    throw failure("{count} or the name of a field in braces is expected")
                }
                places += 1
                guard places <= Self.mostPlaces else {
                    throw failure("more than \(Self.mostPlaces) places in braces")
                }
                if !text.isEmpty { parts.append(.text(text)) }
                text = ""
                parts.append(name == "count" ? .count : .field(name))
                index = end + 1
            default:
                text.unicodeScalars.append(character)
                index += 1
            }
        }
        if !text.isEmpty { parts.append(.text(text)) }
        self.source = source
        self.parts = parts
    }
}

extension JSONReader {
    /// Reads a template, up to the limit of a text.
    func template(_ name: String) throws(JSONContractError) -> DigestTemplate? {
        guard let text = try text(name) else { return nil }
        return try DigestTemplate(text, path: path(of: name))
    }
}
