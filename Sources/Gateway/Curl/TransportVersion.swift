import CCurl

/// The versions of the loaded libraries that carry pushes.
///
/// The caller logs them at the start.
package struct TransportVersion: Sendable, Hashable, CustomStringConvertible {
    /// libcurl's version, for instance `7.88.1`.
    package let curl: String
    /// The TLS library's version, for instance `OpenSSL/3.0.17`.
    package let tls: String
    /// The HTTP/2 library's version, or `nil` if libcurl was built without one.
    package let http2: String?
    /// libcurl's version as `0xXXYYZZ`.
    let number: UInt32
    /// A warning about these versions for the operator, or `nil`.
    package let warning: String?

    /// The versions in one line.
    package var description: String {
        "libcurl \(curl), \(tls), nghttp2 \(http2 ?? "missing")"
    }

    /// The versions that are loaded.
    ///
    /// The first access initialises libcurl.
    package static let loaded = TransportVersion(reading: ())

    private init(reading: Void) {
        curl_global_init(Int(CURL_GLOBAL_DEFAULT))
        let info = ccurl_version().pointee
        let number = info.version_num
        let hasHTTP2 = info.features & CURL_VERSION_HTTP2 != 0
        self.init(
            curl: info.version.map { String(cString: $0) } ?? "unknown", number: number,
            tls: info.ssl_version.map { String(cString: $0) } ?? "no TLS",
            http2: hasHTTP2 ? info.nghttp2_version.map { String(cString: $0) } ?? "unknown" : nil)
    }

    /// Creates a value and judges its versions.
    ///
    /// `number` is libcurl's version as `0xXXYYZZ`.
    init(curl: String, number: UInt32, tls: String, http2: String?) {
        self.curl = curl
        self.number = number
        self.tls = tls
        self.http2 = http2
        warning =
            if http2 == nil {
                "libcurl was built without HTTP/2: no push can be sent"
            } else if number < 0x080000 {
                "libcurl \(curl) would reset every finished stream and hangs after some closings; "
                    + "both are worked around, at a cost: 8.14 or later is recommended"
            } else {
                nil
            }
    }
}

extension TransportVersion {
    /// Checks that the loaded libcurl supports HTTP/2, and can report when a request is about to be
    /// written (since 7.80).
    func validate() throws(GatewaySetupError) {
        guard http2 != nil else { throw .unusableLibrary("libcurl was built without HTTP/2") }
        guard number >= 0x075000 else {
            throw .unusableLibrary("libcurl \(curl) is too old: 7.80 or later is needed")
        }
    }
}
