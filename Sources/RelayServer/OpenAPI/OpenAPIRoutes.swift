import EmbeddedFiles
package import RelayModel

/// The description of the whole HTTP surface (OpenAPI 3.1), which a test holds to the table of
/// routes, and another test holds the relay's answers to.
///
/// The file has what is not administrative; ``AdministrationCall`` says the rest.
package struct OpenAPIRoutes: Sendable {
    private let text: [UInt8]

    /// Serves the document, which names `publicURL` as the place of the relay.
    ///
    /// Where the file cannot be read, which a test rules out, it is served as it is.
    init(publicURL: String) {
        guard var document = Self.document else {
            text = EmbeddedFile("openapi.json").bytes
            return
        }
        document["servers"] = [["url": .string(publicURL)]]
        text = JSONValue.object(document).utf8
    }

    /// The document, with no place of a relay yet.
    package static let document: JSONObject? = {
        let text = EmbeddedFile("openapi.json").bytes
        guard case .object(var object)? = try? JSONValue(parsing: text),
            case .object(var paths)? = object["paths"]
        else { return nil }
        paths.members += AdministrationCall.paths(of: AdministrationCall.all).members
        object["paths"] = .object(paths)
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
