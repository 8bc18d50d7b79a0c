package import RelayModel

/// The page on which users of a container sign in, and the page to which they return.
///
/// `redirectURL` names the container and, if a web page called the relay, the page's origin. The
/// sign-in page hands the user token to that origin (docs/sign-in.md).
package struct SignInAddress: Sendable {
    /// The configured `signIn.url`; `nil` means the relay's own page.
    let configured: String?
    /// The URL at which clients reach the relay.
    let publicURL: PublicURL

    package init(configured: String?, publicURL: PublicURL) {
        self.configured = configured
        self.publicURL = publicURL
    }

    /// Returns the address for users of `key` who come from a page of `origin`.
    package func url(of key: ContainerKey, origin: String?) -> String {
        let origin = origin.flatMap(Self.webOrigin)
        var parameters: [(String, String)] = []
        var address = "\(publicURL)/sign-in/1/\(key.container)/\(key.environment.rawValue)"
        if let configured {
            address = configured
            parameters = [
                ("container", key.container.rawValue), ("environment", key.environment.rawValue),
            ]
        }
        if let origin { parameters.append(("origin", origin)) }
        guard !parameters.isEmpty else { return address }
        let query = parameters.map { "\($0)=\(PercentEncoding.encode($1))" }.joined(separator: "&")
        let fragment = address.firstIndex(of: "#") ?? address.endIndex
        let mark = address[..<fragment].contains("?") ? "&" : "?"
        return address[..<fragment] + mark + query + address[fragment...]
    }

    /// Returns the origin of a web page as browsers write it; `nil` for anything else, such as the
    /// `null` of a file.
    static func webOrigin(_ text: String) -> String? {
        guard text.utf8.count <= 300,
            let scheme = ["https://", "http://"].first(where: text.hasPrefix)
        else { return nil }
        let host = text.dropFirst(scheme.count)
        let isHost = host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"):
                true
            default: false
            }
        }
        return isHost && !host.isEmpty ? text : nil
    }
}
