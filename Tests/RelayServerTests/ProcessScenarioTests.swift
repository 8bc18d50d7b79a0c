import Foundation
import HTTPTypes
import Logging
import RelayModel
import RelayTestKit
import Synchronization
import Testing

@testable import RelayServer

/// What can be changed in a running relay without a restart.
@Suite struct ProcessScenarioTests {
    @Test func `the log level is set for a time and then returns to the configured one`() {
        let seconds = Mutex<Int64>(0)
        let levels = LogLevels(.warning) {
            Timestamp(seconds: 1_000 + seconds.withLock { $0 })
        }
        #expect(levels.level == .warning)
        levels.set(.debug, for: .seconds(60))
        #expect(levels.level == .debug)
        #expect(levels.standing().until == Timestamp(seconds: 1_060))
        seconds.withLock { $0 = 59 }
        #expect(levels.level == .debug)
        seconds.withLock { $0 = 60 }
        #expect(levels.level == .warning)
        #expect(levels.standing() == .init(level: .warning, configured: .warning, until: nil))
        levels.set(.debug, for: .seconds(60))
        seconds.withLock { $0 = -3_600 }
        #expect(levels.standing().until == Timestamp(seconds: -2_540))
        seconds.withLock { $0 = -3_540 }
        #expect(levels.level == .warning)
        levels.set(.trace)
        seconds.withLock { $0 = 1_000_000 }
        #expect(levels.level == .trace)
        levels.configure(.error)
        #expect(levels.level == .trace)
        levels.set(nil)
        #expect(levels.level == .error)
    }

    @Test func `a call sets the log level and refuses invalid ones`() async throws {
        try await TestRelay.with { relay in
            let none = try await relay.admin(.get, "log")
            #expect(none["reason"] == "no relay is running here")
        }
        let levels = LogLevels { TestRelay.now }
        var table = ProcessAdministration(levels: levels, renewCertificates: nil)
        func call(_ body: String) async throws -> RelayAnswer {
            var request = RelayRequest(
                method: "PATCH", target: "/admin/1/log", uuid: "u", receivedAt: TestRelay.now)
            request.body = Array(body.utf8)
            guard let route = table.routes.first(where: { $0.call.method == "PATCH" }) else {
                throw CancellationError()
            }
            return try await route.respond(request, .main(""))
        }
        #expect(try await call(#"{"level":"debug","minutes":10}"#).status == 200)
        #expect(levels.standing().until == TestRelay.now.advanced(by: .seconds(600)))
        #expect(try await call(#"{"level":null}"#).status == 200)
        #expect(levels.level == .info)
        for body in [
            "{}", #"{"level":null,"minutes":5}"#, #"{"level":"loud"}"#,
            #"{"level":"debug","minutes":0}"#, #"{"level":7}"#, #"{"level":"debug","hours":1}"#,
        ] {
            await #expect(throws: (any Error).self, "\(body)") { try await call(body) }
        }
        #expect(levels.level == .info)
        table = ProcessAdministration(levels: nil, renewCertificates: nil)
        await #expect(throws: APIError.self) { try await call(#"{"level":"debug"}"#) }
    }

    // MARK: The access log

    @Test func `the access log is sampled and bounded, and says what it left out`() {
        var settings = AccessLog.Settings()
        settings.choice = .all
        settings.sample = 3
        settings.perSecond = 2
        var share = AccessShare(settings)
        let now = Timestamp(seconds: 5)
        let statuses = [200, 200, 200, 404, 200, 503, 200, 500, 200, 200]
        let taken = statuses.map { share.take($0, at: now).isWritten }
        // Every third request is logged as long as the second has room, and the relay's own
        // failures are always logged.
        #expect(
            taken == [true, false, false, true, false, true, false, true, false, false])
        let next = Timestamp(seconds: 6)
        #expect(share.take(200, at: next).leftOut == AccessShare.LeftOut(count: 2))
        // Failures have a bound of their own.
        let most = AccessLog.Settings.failuresPerSecond
        let failures = (0..<most + 3).count { _ in share.take(503, at: next).isWritten }
        #expect(failures == most)
        #expect(
            share.take(200, at: Timestamp(seconds: 7)).leftOut
                == AccessShare.LeftOut(count: 3, failures: 3))
        settings.choice = .refused
        settings.sample = 1
        share = AccessShare(settings)
        #expect([200, 404, 500].map { share.take($0, at: now).isWritten } == [false, true, true])
    }

    @Test func `no secret of a path is in the access log`() {
        func path(_ template: String, _ parameters: [String: String]) -> String {
            AccessLog.path(
                RelayPlace(path: template, allowed: "", pages: .none), parameters)
        }
        #expect(
            path(
                "/changes/1/{container}/{environment}/{source}",
                ["container": "c", "environment": "production", "source": "s"])
                == "/changes/1/c/production/s")
        #expect(path("/courier/{secret}", ["secret": "abc"]) == "/courier/{secret}")
        #expect(
            path("/a/{user}/{device}", ["user": "u", "device": "d"]) == "/a/{user}/{device}")
        #expect(AccessLog.path(nil, [:]) == "unknown")
    }

    // MARK: The certificate

    /// Writes a self-signed certificate and its key.
    private static func makePair(_ name: String, in folder: URL) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/openssl")
        process.arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2", "-subj", "/CN=\(name)", "-keyout",
            folder.appending(path: "\(name).key").path, "-out",
            folder.appending(path: "\(name).pem").path,
        ]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }

    @Test func `a certificate is renewed, and an invalid one is refused`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "belfry-certificates-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for name in ["one", "two"] { try Self.makePair(name, in: folder) }
        let files = RelayConfiguration.TLSFiles(
            certificate: folder.appending(path: "live.pem").path,
            privateKey: folder.appending(path: "live.key").path)
        func install(_ certificate: String, _ key: String) throws {
            for (from, to) in [("\(certificate).pem", "live.pem"), ("\(key).key", "live.key")] {
                let target = folder.appending(path: to)
                try? FileManager.default.removeItem(at: target)
                try FileManager.default.copyItem(at: folder.appending(path: from), to: target)
            }
        }
        try install("one", "one")
        let logger = Logger.silent
        let served = try ServedCertificate(files, logger: logger)
        let first = served.chain
        let left = Double(try #require(served.expiry).seconds) - Date().timeIntervalSince1970
        // The certificate is valid for two days.
        #expect((86_400...3 * 86_400).contains(left))
        try install("two", "one")
        let notItsKey = ConfigurationError([
            "tls.privateKeyFile: \(files.privateKey) does not match the certificate in "
                + files.certificate
        ])
        #expect(throws: notItsKey) { try served.renew() }
        served.look()
        #expect(served.chain == first)
        try install("two", "two")
        served.look()
        #expect(served.chain != first)
        let second = served.chain
        try Data("no certificate".utf8).write(to: URL(filePath: files.certificate))
        served.look()
        #expect(served.chain == second)
        let noCertificate = ConfigurationError([
            "tls.certificateFile: the file \(files.certificate) has no valid certificate in PEM "
                + "form"
        ])
        #expect(throws: noCertificate) { try served.renew() }
        try install("one", "one")
        try Data("no key".utf8).write(to: URL(filePath: files.privateKey))
        let noKey = ConfigurationError([
            "tls.privateKeyFile: the file \(files.privateKey) has no private key in PEM form "
                + "without a passphrase"
        ])
        #expect(throws: noKey) { try served.renew() }
        let inFolder = RelayConfiguration.TLSFiles(
            certificate: folder.path, privateKey: files.privateKey)
        let aFolder = ConfigurationError([
            "tls.certificateFile: the file \(inFolder.certificate) cannot be read: it is a folder"
        ])
        #expect(throws: aFolder) { try ServedCertificate(inFolder, logger: logger) }
        try install("one", "one")
        #expect(try served.renew())
        #expect(served.chain == first)
    }
}
