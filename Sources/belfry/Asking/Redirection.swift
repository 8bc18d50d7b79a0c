import AsyncHTTPClient
import NIOHTTP1

extension HTTPClientResponse {
    /// The place that a redirection names; `nil` for other answers.
    ///
    /// Redirections are not followed: a redirected POST becomes a GET, and the other server is
    /// often not a relay.
    var redirection: String? {
        guard (300..<400).contains(status.code) else { return nil }
        let place = headers.first(name: "Location") ?? "elsewhere"
        return String(
            place.unicodeScalars.prefix(200).map {
                $0.isASCII && $0.value > 0x20 ? Character($0) : "?"
            })
    }
}
