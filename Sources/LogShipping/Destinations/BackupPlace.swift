/// The place of backups, as a URL names it.
package enum BackupPlace: Sendable, Hashable, CustomStringConvertible {
    /// A folder on this machine.
    case folder(String)
    /// A bucket of an S3-like store, and the prefix of its names: empty, or a text that ends with a
    /// slash.
    case bucket(String, prefix: String)

    /// The rule for the URL, worded to follow "must be".
    package static let rule =
        "file:///FOLDER without . and .. and %?#, or s3://BUCKET or s3://BUCKET/PREFIX with 3 to "
        + "63 small letters, digits and -. in BUCKET, and letters, digits and -._/ in PREFIX"

    /// Parses a URL; returns `nil` if it does not name a place for backups.
    package init?(_ url: String) {
        if url.hasPrefix("file:///") {
            let path = url.dropFirst(7)
            // The path is used undecoded, so it must mean the same to software that decodes URLs.
            guard path.utf8.count > 1, path.utf8.count <= 4096, !path.contains("//"),
                !path.utf8.contains(where: { $0 < 0x20 || "%?#".utf8.contains($0) }),
                !Self.hasDots(path)
            else { return nil }
            self = .folder(String(path.hasSuffix("/") ? path.dropLast() : path))
            return
        }
        guard url.hasPrefix("s3://") else { return nil }
        let parts = url.dropFirst(5).split(
            separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let bucket = parts[0]
        let prefix = parts.count > 1 ? parts[1] : ""
        let isName = bucket.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x61...0x7A, 0x2D, 0x2E: true
            default: false
            }
        }
        guard (3...63).contains(bucket.utf8.count), isName, prefix.utf8.count <= 512,
            prefix.utf8.allSatisfy(Self.isPlain), !prefix.hasPrefix("/"), !prefix.contains("//"),
            !Self.hasDots(prefix)
        else { return nil }
        let folder = prefix.isEmpty || prefix.hasSuffix("/") ? String(prefix) : "\(prefix)/"
        self = .bucket(String(bucket), prefix: folder)
    }

    private static func hasDots(_ path: Substring) -> Bool {
        path.split(separator: "/").contains { $0 == "." || $0 == ".." }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x2D...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: true
        default: false
        }
    }

    package var description: String {
        switch self {
        case .folder(let path): "file://\(path)"
        case .bucket(let name, let prefix): "s3://\(name)/\(prefix)"
        }
    }
}
