import EmbeddedFiles
package import RelayModel

/// Serves the OpenAPI 3.1 description of the whole HTTP surface.
///
/// One test compares it with the table of routes, and another with the relay's answers. The file
/// describes the calls that are not administrative; ``AdministrationCall`` describes the others.
package struct OpenAPIRoutes: Sendable {
    /// The document without the URL of the relay.
    private let text: [UInt8]
    /// The URL of the relay; `nil` if the embedded file cannot be parsed.
    private let publicURL: PublicURL?

    /// Creates the route of the document, which names `publicURL` as the server.
    ///
    /// An embedded file that cannot be parsed, which a test excludes, is served unchanged.
    init(publicURL: PublicURL) {
        guard var document = Self.document else {
            text = EmbeddedFile("openapi.json").bytes
            self.publicURL = nil
            return
        }
        document["servers"] = nil
        text = JSONValue.object(document).utf8
        self.publicURL = publicURL
    }

    /// The document with the relay's URL as its first member.
    private var served: [UInt8] {
        guard let publicURL else { return text }
        let servers: JSONValue = [["url": .string("\(publicURL)")]]
        var bytes = Array("{\"servers\":".utf8)
        bytes += servers.utf8
        bytes.append(UInt8(ascii: ","))
        bytes += text.dropFirst()
        return bytes
    }

    /// The complete document without the URL of a relay; `nil` if the embedded file cannot be
    /// parsed.
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
            RelayRoute(open: .operation, "GET", "/openapi.json") { _ in
                var answer = RelayAnswer(status: 200)
                answer.contentType = "application/json; charset=utf-8"
                answer.body = served
                return answer
            }
        ]
    }
}
