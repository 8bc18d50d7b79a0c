import CCurl

/// The headers that many requests have in common, in the form that libcurl needs.
///
/// Each request puts its own few headers in front. A list lives as long as the last transfer that
/// uses it, even if the provider token changes.
final class CurlHeaders {
    /// The values for which the list was made.
    struct Key: Hashable {
        var topic: String
        var pushType: String
        var priority: Int
        var tokenGeneration: Int
    }

    let key: Key
    private(set) var list: UnsafeMutablePointer<curl_slist>?

    /// Creates the list.
    ///
    /// `bearer` is the provider token, or `nil` with a client certificate.
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
/// It is only used on the gateway's thread, and therefore needs no locks.
final class CurlSessionShare {
    let share: UnsafeMutableRawPointer?

    init() {
        share = curl_share_init()
        if let share { _ = ccurl_share_tls_sessions(share) }
    }

    deinit {
        // All transfers that use it were released before, because they hold this object.
        if let share { curl_share_cleanup(share) }
    }
}
