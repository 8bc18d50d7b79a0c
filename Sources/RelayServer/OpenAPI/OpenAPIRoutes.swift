package import RelayModel

/// The description of the whole HTTP surface (OpenAPI 3.1), which a test holds to the table of
/// routes, and another test holds the relay's answers to.
package struct OpenAPIRoutes: Sendable {
    private let text: [UInt8]

    /// Serves the document, which names `publicURL` as the place of the relay.
    ///
    /// Where the file cannot be read, which a test rules out, it is served as it is.
    init(publicURL: String) {
        guard var document = Self.document else {
            text = PackageResources.openapi_json
            return
        }
        document["servers"] = [["url": .string(publicURL)]]
        text = JSONValue.object(document).utf8
    }

    /// The document as it was written.
    package static let document: JSONObject? = {
        guard case .object(let object)? = try? JSONValue(parsing: PackageResources.openapi_json)
        else { return nil }
        return object
    }()

    var routes: [RelayRoute] {
        [
            RelayRoute(open: .operation, "GET", "/openapi.json") { [text] _ in
                var answer = RelayAnswer(status: 200)
                answer.contentType = "application/json; charset=utf-8"
                answer.body = text
                return answer
            }
        ]
    }
}
