import Foundation
import NIOCore
import NIOHTTP1
import RelayModel
import Synchronization
import Testing

@testable import LogShipping

/// The answers of an S3-like store, and how the destination reacts to them.
@Suite struct BucketTests {
    private func failure(
        of body: () async throws -> Void
    ) async -> DestinationFailure? {
        do {
            try await body()
            return nil
        } catch {
            return error as? DestinationFailure
        }
    }

    @Test func `requests are signed, with the host and the session token`() async throws {
        let server = try await BucketServer.start { _ in BucketServer.Answer() }
        let destination = try server.destination()
        try await destination.put("a/b", [1, 2, 3])
        let question = try #require(server.questions.first)
        #expect(question.method == "PUT" && question.uri == "/bucket/relay/a/b")
        #expect(question.body == [1, 2, 3])
        #expect(question.headers["host"] == [server.host])
        #expect(question.headers["x-amz-security-token"] == ["token"])
        #expect(question.headers["content-md5"] == ["Uonfc331cyb83SJZevsfrA=="])
        let names =
            "SignedHeaders=content-md5;host;if-none-match;x-amz-content-sha256;x-amz-date;"
            + "x-amz-security-token,"
        #expect(question.headers["authorization"].first?.contains(names) == true)
        await destination.close()
        try await server.stop()
    }

    @Test func `writing an object that already exists succeeds if it is the same`() async throws {
        let there = Mutex<String?>("abc")
        let server = try await BucketServer.start { question in
            if question.method == "PUT" {
                return BucketServer.Answer(
                    status: 409, body: "<Error><Code>ConditionalRequestConflict</Code></Error>")
            }
            return there.withLock { there in
                there.map { BucketServer.Answer(body: $0) } ?? BucketServer.Answer(status: 404)
            }
        }
        let destination = try server.destination()
        try await destination.put("a", Array("abc".utf8))
        for other in ["abd", "ab"] {
            let taken = await failure { try await destination.put("a", Array(other.utf8)) }
            #expect(taken?.kind == .taken)
        }
        // With no object there, 409 means that an earlier attempt of our own is still in progress,
        // not that another relay wrote it.
        there.withLock { $0 = nil }
        let pending = await failure { try await destination.put("a", Array("abc".utf8)) }
        #expect(pending?.kind == .away)
        #expect(pending?.description.contains("409 ConditionalRequestConflict") == true)
        await destination.close()
        try await server.stop()
    }

    @Test func `credentials from a shell's pipe last for every request`()
        async throws
    {
        let server = try await BucketServer.start { _ in BucketServer.Answer(body: "whole") }
        let pipe = Pipe()
        let text = "[default]\naws_access_key_id = lent\naws_secret_access_key = secret\n"
        try pipe.fileHandleForWriting.write(contentsOf: Data(text.utf8))
        try pipe.fileHandleForWriting.close()
        var settings = BucketSettings()
        settings.endpoint = "http://\(server.host)"
        settings.credentialsFile = "/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)"
        let destination = try BucketDestination(
            "bucket", prefix: "relay/", settings: settings,
            now: { Timestamp(seconds: 1_700_000_000) })
        for _ in 0..<2 { _ = try await destination.get("a", atMost: 100) }
        // The descriptor must stay open until here.
        try pipe.fileHandleForReading.close()
        #expect(
            server.questions.map { $0.headers.first(name: "authorization") ?? "" }
                .count { $0.contains("Credential=lent/") } == 2)
        try pipe.fileHandleForReading.close()
        await destination.close()
        try await server.stop()
    }

    @Test(.timeLimit(.minutes(2)))
    func `an answer that stalls after its head is given up`() async throws {
        let server = try await BucketServer.start { _ in
            BucketServer.Answer(body: "half", stalls: true)
        }
        let destination = try server.destination(timeout: .milliseconds(200))
        let stalled = await failure { _ = try await destination.get("a", atMost: 100) }
        #expect(stalled?.kind == .away)
        #expect(stalled?.description == "s3://bucket/relay/: no answer came in time")
        await destination.close()
        try await server.stop()
    }

    @Test(.timeLimit(.minutes(2)))
    func `an answer that comes byte by byte is given up`() async throws {
        let server = try await BucketServer.start { _ in
            BucketServer.Answer(body: "slow", drips: true)
        }
        let destination = try server.destination(timeout: .seconds(1))
        let slow = await failure { _ = try await destination.get("a", atMost: 2_000_000) }
        #expect(slow?.kind == .away)
        await destination.close()
        try await server.stop()
    }

    @Test(.timeLimit(.minutes(5)), arguments: [true, false])
    func `an endless list is given up and refused as incomplete`(
        hasNames: Bool
    ) async throws {
        let pages = Mutex(0)
        let server = try await BucketServer.start { _ in
            let page = pages.withLock { pages in
                pages += 1
                return pages
            }
            let names = hasNames ? "<Contents><Key>relay/\(page)</Key></Contents>" : ""
            return BucketServer.Answer(
                body: "<ListBucketResult><IsTruncated>true</IsTruncated>\(names)"
                    + "<NextContinuationToken>\(page)</NextContinuationToken>"
                    + "</ListBucketResult>")
        }
        let destination = try server.destination()
        let refused = await failure { _ = try await destination.names(below: "") }
        #expect(refused?.kind == .refused)
        #expect(
            refused?.description
                == "s3://bucket/relay/: the store's list of files is too long, or never ends")
        #expect(server.questions.count < 1200)
        await destination.close()
        try await server.stop()
    }

    @Test func `an error's reason is one line, and is truncated by scalars`() {
        let marks = String(repeating: "\u{301}", count: 10_000)
        let words = BucketListing.error("<Code>A</Code><Message>e\(marks)\nf</Message>")
        #expect(words?.unicodeScalars.count == 300)
        #expect(BucketListing.error("<Code>A</Code><Message>b\r\nc</Message>") == "A: bc")
    }

    @Test func `an unreachable store is described in words`() {
        let refused = IOError(errnoCode: ECONNREFUSED, reason: "connect(descriptor:addr:size:)")
        #expect(BucketDestination.words(refused) == "Connection refused")
    }

    @Test(arguments: [
        (
            403, "RequestTimeTooSkewed", "the request&#39;s time is too far from the server&#39;s",
            DestinationFailure.Kind.refused,
            "403 RequestTimeTooSkewed: the request's time is too far from the server's"
        ),
        (301, "PermanentRedirect", "elsewhere", .refused, "301 PermanentRedirect: elsewhere"),
        (503, "SlowDown", "slower", .away, "503 SlowDown: slower"),
        (404, "NoSuchBucket", "no bucket", .refused, "404 NoSuchBucket: no bucket"),
    ])
    func `a refusal is described in the store's own words`(
        status: Int, code: String, message: String, kind: DestinationFailure.Kind, words: String
    ) async throws {
        let server = try await BucketServer.start { _ in
            BucketServer.Answer(
                status: status,
                body: "<Error><Code>\(code)</Code><Message>\(message)</Message></Error>")
        }
        let destination = try server.destination()
        let refused = await failure { _ = try await destination.get("a", atMost: 100) }
        #expect(refused?.kind == kind)
        #expect(refused?.description == "s3://bucket/relay/a: \(words)")
        #expect(server.questions.count == 1)
        await destination.close()
        try await server.stop()
    }

    @Test(.timeLimit(.minutes(2)))
    func `a list that makes no progress is refused as incomplete`() async throws {
        let server = try await BucketServer.start { _ in
            BucketServer.Answer(
                body: "<ListBucketResult><IsTruncated>true</IsTruncated>"
                    + "<Contents><Key>relay/a</Key></Contents>"
                    + "<NextContinuationToken>t</NextContinuationToken>"
                    + "</ListBucketResult>")
        }
        let destination = try server.destination()
        let refused = await failure { _ = try await destination.names(below: "") }
        #expect(
            refused?.description
                == "s3://bucket/relay/: the store repeats the same page of its list of files")
        #expect(server.questions.count == 2)
        await destination.close()
        try await server.stop()
    }
}
