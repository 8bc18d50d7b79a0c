import AsyncHTTPClient
import NIOHTTP1

extension HTTPClientResponse {
    /// Where an answer leads instead of being one: a POST that goes there comes as a GET, and what
    /// answers it is often no relay.
    var redirection: String? {
        guard (300..<400).contains(status.code) else { return nil }
        let place = headers.first(name: "Location") ?? "elsewhere"
        return String(
            place.unicodeScalars.prefix(200).map {
                $0.isASCII && $0.value > 0x20 ? Character($0) : "?"
            })
    }
}
