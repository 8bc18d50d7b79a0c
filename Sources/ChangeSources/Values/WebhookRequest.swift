package import RelayModel

/// One webhook as it arrived, before anybody has believed it.
package struct WebhookRequest: Sendable {
    /// The HTTP method, in capitals.
    package var method: String
    /// The URL that was asked for; a signature may cover it.
    package var url: String
    /// The header fields.
    package var headers: WebhookHeaders
    /// The body, byte for byte: signatures cover the bytes, not their meaning.
    package var body: [UInt8]
    /// When the request arrived, by the relay's clock.
    package var receivedAt: Timestamp

    package init(
        method: String = "POST", url: String = "", headers: WebhookHeaders = [:],
        body: [UInt8], receivedAt: Timestamp
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.receivedAt = receivedAt
    }
}

/// The header fields of a webhook; their names are compared without regard to case.
///
/// A field that occurs twice is one field with both values, joined by a comma (RFC 9110 §5.3), so
/// that nobody can show one value to the verifier and another to the decoder.
package struct WebhookHeaders: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    private var values: [String: String] = [:]

    /// Creates fields from a literal of names and values.
    package init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { append(name, value) }
    }

    /// Adds a field as it came.
    package mutating func append(_ name: String, _ value: String) {
        let key = name.lowercased()
        values[key] = values[key].map { "\($0), \(value)" } ?? value
    }

    /// The value of the field `name`, or `nil` if it is absent.
    package subscript(name: String) -> String? {
        values[name.lowercased()]
    }

    /// Whether the body is said to be an event of CloudEvents, or several.
    var announceEvent: Bool {
        let type = (self["Content-Type"] ?? "").drop { $0.isWhitespace }
        return type.lowercased().hasPrefix("application/cloudevents")
    }

    /// The names in lower case, in order.
    package var names: [String] {
        values.keys.sorted()
    }
}
