import EmbeddedFiles
package import RelayModel

/// The description of the whole HTTP surface (OpenAPI 3.1), which a test holds to the table of
/// routes, and another test holds the relay's answers to.
///
/// The file has what is not administrative; ``AdministrationCall`` says the rest.
package struct OpenAPIRoutes: Sendable {
    /// All of it but the place of the relay.
    private let text: [UInt8]
    /// The place of the relay; `nil` where the file cannot be read.
    private let publicURL: PublicURL?

    /// Serves the document, which names `publicURL` as the place of the relay.
    ///
    /// Where the file cannot be read, which a test rules out, it is served as it is.
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

    /// The document, with the place of the relay for its first member.
    private var served: [UInt8] {
        guard let publicURL else { return text }
        let servers: JSONValue = [["url": .string("\(publicURL)")]]
        var bytes = Array("{\"servers\":".utf8)
        bytes += servers.utf8
        bytes.append(UInt8(ascii: ","))
        bytes += text.dropFirst()
        return bytes
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
            RelayRoute(open: .operation, "GET", "/openapi.json") { _ in
                var answer = RelayAnswer(status: 200)
                answer.contentType = "application/json; charset=utf-8"
                answer.body = served
                return answer
            }
        ]
    }
}
