import CCurl

/// The headers that many requests have in common, as libcurl wants them.
///
/// Each request puts its own few in front. A list lives as long as the last transfer that uses it,
/// which outlives a change of the provider token.
final class CurlHeaders {
    /// What the list was made for.
    struct Key: Hashable {
        var topic: String
        var pushType: String
        var priority: Int
        var tokenGeneration: Int
    }

    let key: Key
    private(set) var list: UnsafeMutablePointer<curl_slist>?

    /// Makes the list; `bearer` is the provider token, `nil` with a client certificate.
    init(_ key: Key, bearer: ConcealedText?) {
        self.key = key
        if let bearer { append("authorization: bearer \(bearer.revealed)") }
        append("apns-topic: \(key.topic)")
        append("apns-push-type: \(key.pushType)")
        append("apns-priority: \(key.priority)")
        append("content-type: application/json")
        append("accept:")  // An empty one keeps libcurl from adding its own.
    }

    deinit {
        curl_slist_free_all(list)
    }

    private func append(_ line: String) {
        list = curl_slist_append(list, line)
    }
}

/// Lets the transfers of one pool resume each other's TLS sessions on new connections.
///
/// It is used on the gateway's thread alone and therefore has no locks.
final class CurlSessionShare {
    let share: UnsafeMutableRawPointer?

    init() {
        share = curl_share_init()
        if let share { _ = ccurl_share_tls_sessions(share) }
    }

    deinit {
        // Every transfer that uses it has been released before: they hold this object.
        if let share { curl_share_cleanup(share) }
    }
}
