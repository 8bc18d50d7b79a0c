import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import RelayModel
import Testing

@testable import belfry

/// The messages for relays that cannot be reached and for files that cannot be sent.
@Suite struct ReachingFailureTests {
    private struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    @Test(arguments: [
        (
            "handshakeFailed(NIOSSL.BoringSSLError.sslError([Error: 268435703 error:100000f7:SSL "
                + "routines:OPENSSL_internal:WRONG_VERSION_NUMBER]))",
            "it does not speak TLS: use a URL that begins with http://"
        ),
        (
            "HTTPClientError.remoteConnectionClosed",
            "it closed the connection without an answer; if it speaks TLS, use a URL that begins "
                + "with https://"
        ),
        (
            "connect(descriptor:addr:size:): Connection refused) (errno: 111)",
            "Connection refused"
        ),
        ("HTTPClientError.deadlineExceeded", "it did not answer in time"),
        ("HTTPClientError.connectTimeout", "connecting to it took too long"),
        ("HTTPClientError.tlsHandshakeTimeout", "it did not answer in time"),
        (
            "DNS error: SocketAddressError.UnknownHost: Name or service not known (error -2) for "
                + "host nosuch.invalid, port 1",
            "the name of its host cannot be resolved"
        ),
    ]) func `known failures are described by their meaning`(text: String, told: String) {
        #expect(ReachingFailure(Fault(description: text)).description.contains(told))
    }

    @Test func `an error without a readable description still gets one`() {
        let cases: [(any Error, String)] = [
            (
                HTTPParserError.invalidVersion,
                "it does not speak HTTP: another program may be using the port"
            ),
            (NIOTooManyBytesError(maxBytes: 1), "its answer is longer than a relay's can be"),
            (HTTPClientError.uncleanShutdown, "unclean shutdown"),
        ]
        for (error, told) in cases { #expect(ReachingFailure(error).description == told) }
    }

    @Test(.timeLimit(.minutes(15)))
    func `for a name with several addresses the system's own error is reported`() async throws {
        let client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: RelayTrust().configurations[0])
        // Port 1 (tcpmux) has no listener.
        let request = HTTPClientRequest(url: "http://localhost:1/")
        let error = await #expect(throws: (any Error).self) {
            _ = try await client.execute(request, timeout: .seconds(60))
        }
        try await client.shutdown()
        let told = ReachingFailure(try #require(error)).description
        #expect(told.contains("Connection refused") && !told.contains("("), "\(told)")
    }

    @Test(.timeLimit(.minutes(5)))
    func `an answer that stalls after its head is given up`() async throws {
        let server = try StallingServer()
        let transport = HTTPTransport(
            url: "http://127.0.0.1:\(server.port)", token: "token", trust: RelayTrust(),
            silence: .milliseconds(500))
        let error = await #expect(throws: CommandFailure.self) {
            _ = try await transport.call("GET", "/admin/1/overview", body: nil)
        }
        await transport.close()
        #expect(error?.kind == .unavailable)
        #expect(error?.description.contains("it did not answer in time") == true)
    }

    @Test func `a failed verification says that the relay's own certificate may have changed`() {
        let fault = Fault(description: "sslError(CERTIFICATE_VERIFY_FAILED)")
        let replaced = "; or tls.certificateFile was replaced a moment ago: the relay takes it "
        #expect(ReachingFailure(fault, knowsOwn: true).description.contains(replaced))
        #expect(!ReachingFailure(fault).description.contains(replaced))
        let refused = Fault(description: "Connection refused")
        #expect(!ReachingFailure(refused, knowsOwn: true).description.contains(replaced))
    }

    @Test func `a file that cannot be read is not reported as a failure of the relay`() async throws
    {
        let folder = try Folder.make()
        let utf16 = folder.appending(path: "utf16.ndjson")
        try Data([0xFF, 0xFE, 0x7B, 0x00]).write(to: utf16)
        let cases = [
            (folder.path, "the file \(folder.path) cannot be read: it is a folder"),
            (utf16.path, "the file \(utf16.path) is UTF-16: save it as UTF-8"),
        ]
        for (path, told) in cases {
            let error = await #expect(throws: CommandFailure.self) {
                for try await _ in UploadedFile(firstLine: ["user": "ann"], path: path) {}
            }
            #expect(error == CommandFailure(.input, told))
        }
    }

    @Test func `a pipe from a shell is read like a file`() throws {
        let pipe = Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: Data("secret\n".utf8))
        try pipe.fileHandleForWriting.close()
        let path = "/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)"
        #expect(try InputFile(path).secret() == "secret")
        // The descriptor must stay open until here.
        try pipe.fileHandleForReading.close()
        let folder = try Folder.make()
        #expect(throws: CommandFailure(.input, "there is no file \(folder.path)/none")) {
            try InputFile(folder.path + "/none").bytes()
        }
        #expect(
            throws: CommandFailure(
                .input, "the file \(folder.path) cannot be read: it is a folder")
        ) {
            try InputFile(folder.path).bytes()
        }
    }

    @Test func `an endless file is read only up to the limit`() throws {
        let long = CommandFailure(.input, "the file /dev/zero has more than 100000 bytes")
        #expect(throws: long) { try InputFile("/dev/zero", atMost: 100_000).bytes() }
        let file = try Folder.make().appending(path: "whole")
        try Data(repeating: 0x61, count: 100_000).write(to: file)
        #expect(try InputFile(file.path, atMost: 100_000).bytes().count == 100_000)
    }

    @Test func `a byte order mark is not uploaded`() async throws {
        let file = try Folder.make().appending(path: "marked.ndjson")
        try Data("\u{FEFF}{}\n".utf8).write(to: file)
        var sent: [UInt8] = []
        for try await part in UploadedFile(firstLine: [:], path: file.path) {
            sent += part.readableBytesView
        }
        #expect(sent == Array("{}\n{}\n".utf8))
    }
}
