import AsyncHTTPClient
import Crypto
import FoundationEssentials
import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
package import RelayModel
import Storage
import Synchronization

/// The settings for reaching an S3-like store.
package struct BucketSettings: Sendable, Hashable {
    /// Where the bucket's name goes in a request.
    package enum Addressing: String, Sendable, Hashable, CaseIterable {
        /// Before the host: `https://bucket.host/name`.
        case host
        /// In the path: `https://host/bucket/name`.
        case path
    }

    /// The URL without a path; `nil` means that of AWS in the region.
    package var endpoint: String?
    package var region = "us-east-1"
    package var addressing = Addressing.path
    package var accessKeyID: String?
    package var secret: String?
    package var sessionToken: String?
    /// A file with the credentials, which is read for each request because it may be renewed.
    package var credentialsFile: String?
    /// A file of certificate authorities in PEM form, which replace the system's.
    package var caFile: String?
    /// The time limit of one request.
    package var timeout = Duration.seconds(60)

    package init() {}
}

/// A bucket of an S3-like store.
package final class BucketDestination: BackupDestination {
    private let bucket: String
    private let prefix: String
    private let settings: BucketSettings
    private let now: @Sendable () -> Timestamp
    private let client = Mutex<HTTPClient?>(nil)
    /// The credentials from a file that is not a regular one, such as a pipe.
    ///
    /// The lock is held while the file is read, because a pipe can be read only once and requests
    /// run concurrently.
    private let handedOver = Mutex<BucketCredentials?>(nil)
    private let configuration: HTTPClient.Configuration
    private let host: String
    private let base: String

    /// Creates a destination without connecting to it.
    ///
    /// - Throws: ``DestinationFailure`` if the certificate authorities cannot be read.
    package init(
        _ bucket: String, prefix: String, settings: BucketSettings,
        now: @escaping @Sendable () -> Timestamp
    ) throws(DestinationFailure) {
        self.bucket = bucket
        self.prefix = prefix
        self.settings = settings
        self.now = now
        let endpoint = settings.endpoint ?? "https://s3.\(settings.region).amazonaws.com"
        let whole = endpoint.hasSuffix("/") ? String(endpoint.dropLast()) : endpoint
        let parts = whole.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[2].isEmpty else {
            throw DestinationFailure(.refused, "\(whole) is not the URL of an S3-like store")
        }
        switch settings.addressing {
        case .host:
            host = "\(bucket).\(parts[2])"
            base = ""
        case .path:
            host = String(parts[2])
            base = "/\(bucket)"
        }
        origin = "\(parts[0])//\(host)"
        var configuration = HTTPClient.Configuration()
        configuration.timeout.connect = .seconds(5)
        // The client's deadline covers a request up to the head of its answer. This covers a body
        // that stalls.
        configuration.timeout.read = settings.timeout.amount
        configuration.redirectConfiguration = .disallow
        if let file = settings.caFile {
            guard let authorities = try? NIOSSLCertificate.fromPEMFile(file), !authorities.isEmpty
            else {
                throw DestinationFailure(.refused, "the file \(file) contains no certificate")
            }
            configuration.tlsConfiguration = .makeClientConfiguration()
            configuration.tlsConfiguration?.trustRoots = .certificates(authorities)
        }
        self.configuration = configuration
    }

    private let origin: String

    package var place: String { "s3://\(bucket)/\(prefix)" }

    /// Shuts the client down.
    package func close() async {
        let open = client.withLock { client in
            defer { client = nil }
            return client
        }
        try? await open?.shutdown()
    }

    package func put(_ name: String, _ bytes: [UInt8]) async throws(DestinationFailure) {
        let sum = Self.sum(of: bytes)
        let answer = try await ask(
            "PUT", name, body: bytes, headers: [sum, ("if-none-match", "*")])
        switch answer.status {
        case 200...299: return
        // Stores without support for the condition refuse it as not implemented.
        case 501: try await putUnconditionally(name, bytes)
        case 409, 412: try await compare(name, bytes, answer)
        default: throw failure(answer, name)
        }
    }

    /// Returns the header with the MD5 of the body.
    ///
    /// A bucket with object lock accepts no object without a checksum header, and MD5 is the one
    /// that all stores know.
    private static func sum(of bytes: [UInt8]) -> (String, String) {
        ("content-md5", Base64.encode(Array(Insecure.MD5.hash(data: bytes))))
    }

    /// Decides what to do about a name that is taken, as `answer` says.
    ///
    /// If the same bytes are there, an earlier attempt whose answer was lost has succeeded. If
    /// nothing is there, another write may still be in progress (409); the failure is temporary and
    /// the caller tries again.
    private func compare(
        _ name: String, _ bytes: [UInt8], _ answer: Answer
    ) async throws(DestinationFailure) {
        guard let there = try await get(name, atMost: max(bytes.count, maximumShipped)) else {
            throw DestinationFailure(.away, failure(answer, name).description)
        }
        if there != bytes {
            throw DestinationFailure(.taken, "\(place)\(name) exists already, with other contents")
        }
    }

    private func putUnconditionally(
        _ name: String, _ bytes: [UInt8]
    ) async throws(DestinationFailure) {
        if let there = try await get(name, atMost: max(bytes.count, maximumShipped)),
            there != bytes
        {
            throw DestinationFailure(.taken, "\(place)\(name) exists already, with other contents")
        }
        let answer = try await ask("PUT", name, body: bytes, headers: [Self.sum(of: bytes)])
        guard (200...299).contains(answer.status) else { throw failure(answer, name) }
    }

    package func get(
        _ name: String, atMost limit: Int
    ) async throws(DestinationFailure) -> [UInt8]? {
        let answer = try await ask("GET", name, atMost: limit)
        if answer.status == 404, BucketListing.error(answer.text)?.hasPrefix("NoSuchBucket") != true
        {
            return nil
        }
        guard answer.status == 200 else { throw failure(answer, name) }
        return answer.body
    }

    package func names(below prefix: String) async throws(DestinationFailure) -> [String] {
        var names: [String] = []
        var (bytes, pages) = (0, 0)
        var continuation: String?
        repeat {
            var query = [("list-type", "2"), ("prefix", self.prefix + prefix)]
            if let continuation { query.append(("continuation-token", continuation)) }
            let answer = try await ask("GET", nil, query: query, atMost: 16 << 20)
            guard answer.status == 200, let page = BucketListing(answer.text) else {
                throw failure(answer, "the list")
            }
            let found = page.keys.compactMap { key in
                key.hasPrefix(self.prefix) ? String(key.dropFirst(self.prefix.count)) : nil
            }
            names += found
            bytes += found.reduce(0) { $0 + $1.utf8.count }
            pages += 1
            guard page.continuation == nil || page.continuation != continuation else {
                throw DestinationFailure(
                    .refused, "\(place): the store repeats the same page of its list of files")
            }
            continuation = page.continuation
            // Names beyond the end of a truncated list would be taken for removed objects.
            guard continuation == nil || Self.mayGoOn(names.count, bytes: bytes, pages: pages)
            else {
                throw DestinationFailure(
                    .refused, "\(place): the store's list of files is too long, or never ends")
            }
        } while continuation != nil
        return names
    }

    /// Returns whether a list may continue after so many names, bytes and pages.
    ///
    /// Stores send a thousand names a page, and occasionally a page without any.
    private static func mayGoOn(_ names: Int, bytes: Int, pages: Int) -> Bool {
        names < maximumNames && bytes < 128 * maximumNames && pages < 1000 + names / 10
    }

    package func remove(_ name: String) async throws(DestinationFailure) {
        let answer = try await ask("DELETE", name)
        guard (200...299).contains(answer.status) || answer.status == 404 else {
            throw failure(answer, name)
        }
    }

    // MARK: Asking

    private struct Answer {
        let status: Int
        let body: [UInt8]
        var text: String { String(decoding: body, as: UTF8.self) }
    }

    private func failure(_ answer: Answer, _ name: String) -> DestinationFailure {
        let words = BucketListing.error(answer.text) ?? "no reason is given"
        let isRefused = (300...499).contains(answer.status) && ![408, 429].contains(answer.status)
        return DestinationFailure(
            isRefused ? .refused : .away, "\(place)\(name): \(answer.status) \(words)")
    }

    /// The client, which is created at the first request.
    private var opened: HTTPClient {
        client.withLock { client in
            if let client { return client }
            let made = HTTPClient(
                eventLoopGroupProvider: .singleton, configuration: configuration)
            client = made
            return made
        }
    }

    private func credentials() throws(DestinationFailure) -> BucketCredentials {
        if let file = settings.credentialsFile {
            if FileManager.default.isPlainFile(file) { return try Self.credentials(in: file) }
            // A pipe from a shell can be read only once.
            return try handedOver.withLock { known throws(DestinationFailure) in
                if let known { return known }
                let read = try Self.credentials(in: file)
                known = read
                return read
            }
        }
        guard let key = settings.accessKeyID, let secret = settings.secret else {
            throw DestinationFailure(
                .refused,
                "there are no credentials: set backup.s3.credentialsFile, or backup.s3.accessKeyID "
                    + "and backup.s3.secretAccessKey")
        }
        return BucketCredentials(
            accessKeyID: key, secret: secret, sessionToken: settings.sessionToken)
    }

    private static func credentials(
        in file: String
    ) throws(DestinationFailure) -> BucketCredentials {
        let bytes: [UInt8]
        do {
            bytes = try WholeFile.bytes(at: file, atMost: mostCredentialBytes)
        } catch {
            throw DestinationFailure(
                .refused, "the file \(file) cannot be read: \(error.systemReason)")
        }
        guard let credentials = BucketCredentials(file: String(decoding: bytes, as: UTF8.self))
        else {
            throw DestinationFailure(
                .refused, "the file \(file) has no aws_access_key_id and aws_secret_access_key")
        }
        return credentials
    }

    /// The maximum size of a credentials file.
    ///
    /// A file of the AWS tools has about a hundred bytes a profile.
    private static let mostCredentialBytes = 1024 * 1024

    private func ask(
        _ method: String, _ name: String?, query: [(String, String)] = [], body: [UInt8] = [],
        headers: [(String, String)] = [], atMost limit: Int = 1 << 20
    ) async throws(DestinationFailure) -> Answer {
        let path =
            base + "/" + (name.map { PercentEncoding.encode(prefix + $0, isPath: true) } ?? "")
        let signature = RequestSignature(
            method: method, host: host, path: path, query: query, headers: headers,
            bodyHash: RequestSignature.hash(body), region: settings.region, moment: now())
        let text = RequestSignature.text(of: query)
        var request = HTTPClientRequest(url: origin + path + (text.isEmpty ? "" : "?\(text)"))
        request.method = HTTPMethod(rawValue: method)
        for (name, value) in headers + signature.signed(with: try credentials()) {
            request.headers.add(name: name, value: value)
        }
        if method == "PUT" { request.body = .bytes(ByteBuffer(bytes: body)) }
        do {
            let answer = try await opened.execute(request, timeout: settings.timeout.amount)
            var found: [UInt8] = []
            // Measured on an event loop's clock, as the client measures its timeouts.
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            let began = loop.now
            for try await part in answer.body {
                found.append(contentsOf: part.readableBytesView)
                guard found.count <= max(limit, 1 << 16) else {
                    throw DestinationFailure(
                        .refused, "\(place)\(name ?? ""): the answer is larger than \(limit) bytes")
                }
                guard loop.now - began <= patience(for: found.count) else {
                    throw DestinationFailure(.away, "\(place): the answer arrives too slowly")
                }
            }
            return Answer(status: Int(answer.status.code), body: found)
        } catch let failure as DestinationFailure {
            throw failure
        } catch {
            throw DestinationFailure(.away, "\(place): \(Self.words(error))")
        }
    }

    /// Returns how long it may take to receive `bytes` bytes.
    ///
    /// An answer that comes byte by byte never triggers the read timeout, so without this limit it
    /// could take forever.
    private func patience(for bytes: Int) -> TimeAmount {
        settings.timeout.amount + .seconds(Int64(bytes / Self.leastBytesPerSecond))
    }

    private static let leastBytesPerSecond = 16_384

    /// Returns a readable description of what went wrong.
    static func words(_ error: any Error) -> String {
        switch error {
        case let error as HTTPClientError
        where error == .deadlineExceeded || error == .readTimeout:
            "no answer came in time"
        case let error as HTTPClientError where error == .connectTimeout:
            "no connection was made in time"
        case let error as HTTPClientError: error.shortDescription.lowercased()
        case let error as NIOConnectionError:
            // A host with several addresses may fail for several reasons; each is listed once.
            error.connectionErrors.isEmpty
                ? "the name of its host cannot be resolved"
                : Set(error.connectionErrors.map { words($0.error) }).sorted()
                    .joined(separator: ", ")
        // NIO's own description also names the system call.
        case let error as IOError: unsafe String(cString: strerror(error.errnoCode))
        default: "\(error)"
        }
    }
}

private extension Duration {
    var amount: TimeAmount { .nanoseconds(Int64(self / .nanoseconds(1))) }
}
