package import RelayModel

/// One webhook as it arrived, not yet verified.
package struct WebhookRequest: Sendable {
    /// The HTTP method, in capitals.
    package var method: String
    /// The requested URL, which a signature may cover.
    package var url: String
    /// The header fields.
    package var headers: WebhookHeaders
    /// The raw body.
    ///
    /// Signatures cover the bytes, not their meaning.
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

/// The header fields of a webhook.
///
/// Names are compared without regard to case.
///
/// A field that occurs twice becomes one field with both values, joined by a comma (RFC 9110 §5.3).
/// So no sender can show one value to the verifier and another to the decoder.
package struct WebhookHeaders: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    private var values: [String: String] = [:]

    /// Creates header fields from a literal of names and values.
    package init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { append(name, value) }
    }

    /// Adds a received field.
    package mutating func append(_ name: String, _ value: String) {
        let key = name.lowercased()
        values[key] = values[key].map { "\($0), \(value)" } ?? value
    }

    /// The value of the field `name`, or `nil` if it is absent.
    package subscript(name: String) -> String? {
        values[name.lowercased()]
    }

    /// Whether the content type declares the body to be one or several CloudEvents.
    var announceEvent: Bool {
        let type = (self["Content-Type"] ?? "").drop { $0.isWhitespace }
        return type.lowercased().hasPrefix("application/cloudevents")
    }

    /// The names in lower case, sorted.
    package var names: [String] {
        values.keys.sorted()
    }
}
