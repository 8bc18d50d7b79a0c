import Crypto
import Foundation
import RelayModel
import Testing

@testable import Gateway

@Suite struct ProviderTokenLifeTests {
    private let key = ProviderTokenRecord.Key(
        teamID: "TEAM000001", keyID: "KEY0000001", environment: .production)

    private func moment(_ minutes: Int64) -> Timestamp {
        Timestamp(seconds: 1_700_000_000 + 60 * minutes)
    }

    private func record(_ minutes: Int64, _ token: String = "a") -> ProviderTokenRecord {
        ProviderTokenRecord(key: key, token: ConcealedText(token), issuedAt: moment(minutes))
    }

    private func life(adopting records: ProviderTokenRecord...) -> ProviderTokenLife {
        var life = ProviderTokenLife()
        var generator = CountingGenerator(value: 1)
        for record in records { life.adopt(record, using: &generator) }
        return life
    }

    @Test func `the first token is minted and dated a few seconds back`() {
        let step = ProviderTokenLife().step(at: moment(0))
        #expect(step == .mint(issuedAt: moment(0).advanced(by: .seconds(-5))))
    }

    @Test func `a stored token is used until it is about fifty minutes old`() {
        let life = life(adopting: record(0))
        #expect(life.step(at: moment(1)) == .use(record(0), generation: 1))
        #expect(life.step(at: moment(46)) == .use(record(0), generation: 1))
        #expect(life.step(at: moment(54)) == .mint(issuedAt: moment(54).advanced(by: .seconds(-5))))
    }

    @Test func `renewals are spread over six minutes`() {
        var renewals: Set<Int64> = []
        for seed in 0..<200 as Range<UInt64> {
            var generator = CountingGenerator(value: seed &* 0xABCD_EF01_2345_6789)
            var life = ProviderTokenLife()
            life.adopt(record(0), using: &generator)
            let renewal = (0..<3600).first { second in
                let now = moment(0).advanced(by: .seconds(second))
                if case .mint = life.step(at: now) { return true }
                return false
            }
            renewals.insert(Int64(renewal ?? 0) / 60)
        }
        #expect(renewals.isSubset(of: [47, 48, 49, 50, 51, 52, 53]))
        #expect(renewals.count >= 5)
    }

    @Test func `a token from a clock that was ahead is not used`() {
        let life = life(adopting: record(10))
        #expect(life.step(at: moment(9)) == .use(record(10), generation: 1))
        #expect(life.step(at: moment(8)) == .mint(issuedAt: moment(8).advanced(by: .seconds(-5))))
    }

    @Test func `an expired token is renewed once for all requests that showed it`() {
        var life = life(adopting: record(0))
        let first = life.refuseAsExpired(generation: 1, at: moment(30))
        let second = life.refuseAsExpired(generation: 1, at: moment(30))
        #expect(first == .renewing)
        #expect(second == .renewing)
        var generator = CountingGenerator(value: 1)
        life.adopt(record(30, "b"), using: &generator)
        let late = life.refuseAsExpired(generation: 1, at: moment(30))
        #expect(late == .renewing)
        #expect(life.step(at: moment(31)) == .use(record(30, "b"), generation: 2))
        life.adopt(record(80, "c"), using: &generator)
        let veryLate = life.refuseAsExpired(generation: 1, at: moment(80))
        #expect(veryLate == .alreadyRenewed)
    }

    @Test func `no token is minted if a young one is called expired`() {
        var life = life(adopting: record(0))
        let verdict = life.refuseAsExpired(generation: 1, at: moment(19))
        #expect(verdict == .tooYoung(age: .seconds(19 * 60)))
        #expect(life.step(at: moment(19)) == .use(record(0), generation: 1))
    }

    @Test func `after too many updates the older token is used, and later the younger one`() {
        var life = life(adopting: record(0, "a"), record(25, "b"))
        life.refuseAsTooMany(generation: 2, at: moment(26))
        #expect(life.step(at: moment(27)) == .use(record(0, "a"), generation: 1))
        #expect(life.step(at: moment(58)) == .use(record(0, "a"), generation: 1))
        #expect(life.step(at: moment(60)) == .use(record(25, "b"), generation: 2))
        #expect(life.step(at: moment(80)) == .mint(issuedAt: moment(80).advanced(by: .seconds(-5))))
    }

    @Test func `when the older token ends, the younger one is used and nothing is minted`() {
        var life = life(adopting: record(0, "a"), record(50, "b"))
        life.refuseAsTooMany(generation: 2, at: moment(50))
        #expect(life.step(at: moment(58)) == .use(record(0, "a"), generation: 1))
        #expect(life.step(at: moment(59)) == .use(record(50, "b"), generation: 2))
        #expect(life.step(at: moment(96)) == .use(record(50, "b"), generation: 2))
    }

    @Test func `an expired token is never used again, and too many updates mint nothing`() {
        var life = life(adopting: record(0, "a"))
        let first = life.refuseAsExpired(generation: 1, at: moment(30))
        #expect(first == .renewing)
        var generator = CountingGenerator(value: 1)
        life.adopt(record(30, "b"), using: &generator)
        life.refuseAsTooMany(generation: 2, at: moment(30))
        #expect(life.step(at: moment(31)) == .use(record(30, "b"), generation: 2))
        let second = life.refuseAsExpired(generation: 2, at: moment(31))
        #expect(second == .tooYoung(age: .seconds(60)))
        #expect(life.step(at: moment(49)) == .use(record(30, "b"), generation: 2))
    }

    @Test func `without a usable token the next minting is waited for`() {
        var life = life(adopting: record(0))
        life.refuseAsTooMany(generation: 1, at: moment(45))
        #expect(life.step(at: moment(57)) == .use(record(0), generation: 1))
        #expect(life.step(at: moment(59)) == .wait(until: moment(65)))
        #expect(life.step(at: moment(65)) == .mint(issuedAt: moment(65).advanced(by: .seconds(-5))))
        let expired = life.refuseAsExpired(generation: 1, at: moment(46))
        #expect(expired == .renewing)
        #expect(life.step(at: moment(47)) == .wait(until: moment(65)))
    }

    @Test func `a wait that began on a clock ahead ends when the clock is set back`() {
        var life = life(adopting: record(0))
        life.refuseAsTooMany(generation: 1, at: moment(30))
        let yesterday = moment(-24 * 60)
        let step = life.step(at: yesterday)
        #expect(step == .mint(issuedAt: yesterday.advanced(by: .seconds(-5))))
    }
}

@Suite struct ProviderTokenSignerTests {
    private let privateKey = P256.Signing.PrivateKey()

    private func key(pem: String? = nil) throws -> GatewayCredential.SigningKey {
        try #require(
            GatewayCredential.SigningKey(
                teamID: "TEAM000001", keyID: "KEY0000001",
                privateKeyPEM: ConcealedText(pem ?? privateKey.pemRepresentation)))
    }

    @Test func `the token is a JWT that the public key verifies`() throws {
        let signer = try ProviderTokenSigner(try key())
        let token = try signer.sign(issuedAt: Timestamp(seconds: 1_700_000_000)).revealed
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        try #require(parts.count == 3)
        #expect(!token.contains("=") && !token.contains("+") && !token.contains("/"))
        let header = try JSONValue(parsing: try #require(Base64.decode(parts[0])))
        let claims = try JSONValue(parsing: try #require(Base64.decode(parts[1])))
        #expect(header == ["alg": "ES256", "kid": "KEY0000001"])
        #expect(claims == ["iss": "TEAM000001", "iat": 1_700_000_000])
        let signature = try P256.Signing.ECDSASignature(
            rawRepresentation: try #require(Base64.decode(parts[2])))
        let signed = Array("\(parts[0]).\(parts[1])".utf8)
        #expect(privateKey.publicKey.isValidSignature(signature, for: signed))
    }

    @Test func `a token is identified by its signature`() throws {
        let signer = try ProviderTokenSigner(key())
        let token = try signer.sign(issuedAt: Timestamp(seconds: 1_700_000_000))
        #expect(signer.hasSigned(token))
        let stranger = P256.Signing.PrivateKey().pemRepresentation
        #expect(try !ProviderTokenSigner(key(pem: stranger)).hasSigned(token))
        for text in ["", "a.b", "a.b.c", token.revealed + "A", "a" + token.revealed] {
            #expect(!signer.hasSigned(ConcealedText(text)), "\(text)")
        }
    }

    @Test func `a malformed key is refused with the expected form, and without its text`() throws {
        let key = try key(pem: "-----BEGIN SECRET-----")
        #expect(throws: ProviderTokenSigner.KeyError()) { try ProviderTokenSigner(key) }
        #expect(!ProviderTokenSigner.KeyError().description.contains("SECRET"))
    }

    @Test(arguments: ["", "TEAM 1", "TEAM\"1", "TÉAM", String(repeating: "A", count: 65)])
    func `identifiers are letters and digits`(identifier: String) {
        let pem = ConcealedText("")
        #expect(
            GatewayCredential.SigningKey(teamID: identifier, keyID: "K", privateKeyPEM: pem) == nil)
        #expect(
            GatewayCredential.SigningKey(teamID: "T", keyID: identifier, privateKeyPEM: pem) == nil)
    }

    @Test func `no description shows a secret`() throws {
        let secret = privateKey.pemRepresentation
        let credential = GatewayCredential.signingKey(try key())
        let line = try #require(secret.split(separator: "\n").dropFirst().first)
        #expect(!"\(credential)".contains(line))
        #expect(!String(reflecting: credential).contains(line))
        var dumped = ""
        dump(credential, to: &dumped)
        #expect(!dumped.contains(line))
    }
}

@Suite struct CredentialTrialTests {
    private let invalid = ReasonTable.apns.row(status: 403, reason: "InvalidProviderToken")

    private func judge(
        _ trial: inout CredentialTrial, _ row: ReasonRow, _ connection: UInt64,
        newest: UInt64? = nil
    ) -> GatewayReaction {
        trial.judge(row, connection: connection, newest: newest ?? connection)
    }

    @Test func `one refusal blames the connection, the same on a fresh one the credential`() {
        var trial = CredentialTrial()
        let reactions = [1, 1, 2, 2].map { judge(&trial, invalid, $0) }
        #expect(
            reactions == [
                .retryOnFreshConnection, .retryOnFreshConnection, .pauseContainer, .pauseContainer,
            ])
    }

    @Test func `a connection that was open beside the refused one is not fresh`() {
        var trial = CredentialTrial()
        let reactions = [
            judge(&trial, invalid, 1, newest: 2), judge(&trial, invalid, 2),
            judge(&trial, invalid, 3),
        ]
        #expect(
            reactions == [.retryOnFreshConnection, .retryOnFreshConnection, .pauseContainer])
    }

    @Test func `a credential that is refused repeatedly pauses longer, up to a minute`() {
        var trial = CredentialTrial()
        var rests: [Duration] = []
        for connection in 1...8 as ClosedRange<UInt64> {
            _ = judge(&trial, invalid, connection)
            _ = judge(&trial, invalid, connection)
            rests.append(trial.rest(after: invalid))
        }
        #expect(rests == [4, 4, 8, 16, 32, 60, 60, 60].map { .seconds($0) })
    }

    @Test func `an accepted push clears the credential`() {
        var trial = CredentialTrial()
        _ = judge(&trial, invalid, 1)
        trial.acquit()
        let reaction = judge(&trial, invalid, 2)
        #expect(reaction == .retryOnFreshConnection)
    }

    @Test func `a refusal without a second chance is final at once`() {
        var trial = CredentialTrial()
        let row = ReasonTable.apns.row(status: 403, reason: "BadCertificate")
        let reaction = judge(&trial, row, 1)
        #expect(reaction == .pauseContainer)
    }
}

@Suite struct GatewaySettingsTests {
    @Test(arguments: [
        ("https://127.0.0.1:8443", "https://127.0.0.1:8443"),
        ("https://push.example.com/", "https://push.example.com"),
        ("https://[::1]:8443", "https://[::1]:8443"),
    ])
    func `an endpoint is an https URL without a path`(text: String, url: String) {
        #expect(GatewayEndpoint(text)?.url == url)
    }

    @Test(arguments: [
        "", "https://", "http://push.example.com", "push.example.com", "https://a/b",
        "https://user@a", "https://a b", "https://a?b", "https://a\r\nb",
    ])
    func `another text is not an endpoint`(text: String) {
        #expect(GatewayEndpoint(text) == nil)
    }

    @Test func `APNs has a host for each environment and two ports`() {
        #expect(GatewayEndpoint.apns(.production).url == "https://api.push.apple.com:443")
        #expect(
            GatewayEndpoint.apns(.development, port: .alternative).url
                == "https://api.sandbox.push.apple.com:2197")
    }

    @Test func `settings out of range are refused by name`() {
        let changes: [(String, (inout CurlGatewaySettings) -> Void)] = [
            ("connectionsPerCredential", { $0.connectionsPerCredential = 0 }),
            ("streamsPerConnection", { $0.streamsPerConnection = 1001 }),
            ("maximumWaiting", { $0.maximumWaiting = 0 }),
            ("watchdog", { $0.watchdog = .zero }),
            ("idleTimeout", { $0.idleTimeout = .seconds(8 * 86_400) }),
        ]
        for (name, change) in changes {
            var settings = CurlGatewaySettings()
            change(&settings)
            let error = #expect(throws: GatewaySetupError.self) { try settings.validate() }
            #expect(error?.description.hasPrefix("\(name) must be") == true)
        }
    }

    /// Guards a test run against a certain libcurl from silently using the one of this machine.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["BELFRY_LIBCURL"] != nil))
    func `the libcurl in use is the requested one`() throws {
        let wanted = try #require(ProcessInfo.processInfo.environment["BELFRY_LIBCURL"])
        #expect(TransportVersion.loaded.curl.hasPrefix(wanted))
    }

    @Test func `an old libcurl is warned about and a very old one refused`() {
        let old = TransportVersion(curl: "7.88.1", number: 0x075801, tls: "t", http2: "1.52")
        let new = TransportVersion(curl: "8.14.1", number: 0x080E01, tls: "t", http2: "1.52")
        let bare = TransportVersion(curl: "8.14.1", number: 0x080E01, tls: "t", http2: nil)
        let ancient = TransportVersion(curl: "7.74.0", number: 0x074A00, tls: "t", http2: "1.43")
        #expect(old.warning?.hasPrefix("libcurl 7.88.1") == true)
        #expect(new.warning == nil)
        #expect(bare.warning?.contains("without HTTP/2") == true)
        #expect(throws: Never.self) { try old.validate() }
        #expect(throws: GatewaySetupError.self) { try bare.validate() }
        #expect(throws: GatewaySetupError.self) { try ancient.validate() }
    }
}
