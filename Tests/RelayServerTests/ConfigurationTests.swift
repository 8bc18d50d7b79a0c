import Foundation
import RelayModel
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

@Suite struct ConfigurationTests {
    private func decode(
        _ arguments: [String] = [], environment: [String: String] = [:]
    ) async throws -> RelayConfiguration {
        try RelayConfiguration(
            try await ConfigurationValues.gather(arguments: arguments, environment: environment))
    }

    @Test func `an invalid database URL is reported together with other settings`() async throws {
        let url = try await problems(["--storage-url", "mysql://geheim@h/d", "--http-port", "x"])
        #expect(url.count == 2)
        let told = url.first { $0.hasPrefix("storage.url: ") } ?? ""
        #expect(told.contains("begins with postgresql://") && !told.contains("geheim"), "\(url)")
        let schema = try await problems([
            "--storage-url", "postgresql://h/d", "--storage-schema", "House",
        ])
        #expect(schema.count == 1 && schema[0].hasPrefix("storage.schema: "), "\(schema)")
    }

    private func problems(
        _ arguments: [String] = [], environment: [String: String] = [:]
    ) async throws -> [String] {
        do {
            _ = try await decode(arguments, environment: environment)
            return []
        } catch let error as ConfigurationError {
            return error.problems
        }
    }

    private func withFile(
        _ text: String, _ body: (String) async throws -> Void
    ) async throws {
        let url = FileManager.default.temporaryDirectory
            .appending(path: "belfry-\(UUID().uuidString).json")
        try Data(text.utf8).write(to: url)
        defer { try? FileManager.default.removeItem(at: url) }
        try await body(url.path)
    }

    @Test func `without settings the documented defaults apply`() async throws {
        let configuration = try await decode()
        #expect(configuration.http == .init(host: "127.0.0.1", port: 8080))
        #expect(configuration.admin == .init(host: "127.0.0.1", port: 8081))
        #expect(configuration.adminToken == nil)
        #expect(configuration.publicURL == "http://127.0.0.1:8080")
        #expect(
            configuration.gateway.url(of: .development) == "https://api.sandbox.push.apple.com")
        #expect(configuration.gateway.url(of: .production) == "https://api.push.apple.com")
        #expect(configuration.limits == RequestLimits())
        #expect(configuration.queries == QueryAdmission.Settings())
        var store = StoreSettings()
        for quota in Quota.allCases { store.quotas[quota] = quota.standard }
        // The relay does not create a missing store unless it is told to; only tests and tools do.
        store.creation = .never
        #expect(configuration.store == store)
    }

    @Test(arguments: [
        ("0.0.0.0", "http://127.0.0.1:8080"), ("::", "http://[::1]:8080"),
        ("::1", "http://[::1]:8080"), ("fd00::5", "http://[fd00::5]:8080"),
        ("relay.internal", "http://relay.internal:8080"),
    ])
    func `the default public URL is the listener's reachable address`(
        host: String, url: String
    ) async throws {
        #expect(try await decode(["--http-host", host]).publicURL == url)
    }

    @Test func `the size of a database has no bound unless one is set`() async throws {
        #expect(try await decode().upkeep.databaseBytes == 0)
        let flag = "--bounds-database-megabytes"
        let bounded = try await decode([flag, "10000000000", "--storage-url", "postgresql://h/d"])
        #expect(bounded.upkeep.databaseBytes == 10_000_000_000 * 1_048_576)
        let problems = try await problems([flag, "10000000001"])
        #expect(problems.count == 1 && problems[0].hasPrefix("bounds.databaseMegabytes ("))
    }

    @Test func `blanks around the elements of a list are ignored`() async throws {
        try await withFile(#"{"limits":{"deniedRecordTypes":"Secret* , _* "}}"#) { path in
            let configuration = try await decode(environment: ["BELFRY_CONFIG": path])
            #expect(configuration.limits.deniedRecordTypes == ["Secret*", "_*"])
        }
    }

    /// Without allowed origins any page may connect.
    ///
    /// Two unset variables must not have that effect.
    @Test(arguments: [
        ("--live-allowed-origins", ","), ("--http-trusted-proxies", " , "),
        ("--limits-denied-record-types", ","), ("--rates-containers", ",,"),
    ])
    func `an empty list is refused`(flag: String, value: String) async throws {
        let found = try await problems(["\(flag)=\(value)"])
        let rule = "must be a list of texts, divided by commas"
        #expect(found.map { $0.hasSuffix(rule) } == [true], "\(found)")
    }

    @Test func `flags take precedence over variables, and variables over the file`() async throws {
        let text =
            #"{"http":{"host":"1.1.1.1","port":1,"publicURL":"https://a.example/"},"apns":{""#
            + #"url":"https://gateway.example:2197"},"limits":{"deniedRecordTypes":["_*""#
            + #","Secret"]}}"#
        try await withFile(text) { path in
            let configuration = try await decode(
                ["--http-port", "3"],
                environment: [
                    "BELFRY_CONFIG": path, "BELFRY_HTTP_PORT": "2",
                    "BELFRY_HTTP_HOST": "2.2.2.2",
                    "BELFRY_ADMIN_TOKEN": "hush-hush-hush-hush-hush",
                ])
            #expect(configuration.http == .init(host: "2.2.2.2", port: 3))
            #expect(configuration.publicURL == "https://a.example")
            #expect(
                configuration.gateway.url(of: .production) == "https://gateway.example:2197")
            #expect(configuration.limits.deniedRecordTypes == ["_*", "Secret"])
            #expect(configuration.adminToken == "hush-hush-hush-hush-hush")
            #expect(!configuration.description.contains("hush"))
            #expect(configuration.description.contains("admin.token = (hidden)"))
        }
    }

    @Test func `all errors are reported at once with key, value and rule`() async throws {
        let found = try await problems([
            "--http-port", "70000", "--log-level", "loud", "--apns-url", "http://x",
        ])
        #expect(
            found == [
                "http.port (--http-port, BELFRY_HTTP_PORT): \"70000\" must be a whole number "
                    + "from 0 to 65535",
                "apns.url (--apns-url, BELFRY_APNS_URL): \"http://x\" must be a URL that begins "
                    + "with https://, without a path",
                "log.level (--log-level, BELFRY_LOG_LEVEL): \"loud\" must be one of trace, debug, "
                    + "info, notice, warning, error, critical",
            ])
        let broken = try await problems(environment: ["BELFRY_HTTP_PORT": "80\n80\u{1b}"])
        #expect(broken.count == 1 && broken[0].contains(#": "80\n80\u001b" must be"#), "\(broken)")
        let half = try await problems(environment: ["BELFRY_TLS_CERTIFICATE_FILE": "c.pem"])
        #expect(half.count == 1)
    }

    @Test(arguments: [
        (["--http-port"], ["--http-port has no value"]),
        (["--http-port", "--http-host", "::1"], ["--http-port has no value"]),
        (["--http-port=1", "--http-port", "2"], ["--http-port is given twice"]),
        (["8080", "--http-port", "1"], ["8080 is not a setting; see docs/configuration.md"]),
        (["--http-port", "1", "2"], ["2 is not a setting; see docs/configuration.md"]),
        (
            ["--htp-port", "1", "-p", "--x=2"],
            [
                "--htp-port is not a setting; did you mean --http-port?",
                "-p is not a setting; see docs/configuration.md",
                "--x is not a setting; see docs/configuration.md",
            ]
        ),
    ])
    func `flags without an effect are refused`(
        arguments: [String], problems wanted: [String]
    ) async throws {
        let found = try await problems(arguments)
        #expect(found == wanted)
    }

    /// The command line's parser treats a comma as the end of a value, and would drop the rest
    /// silently.
    @Test func `a given value is accepted or refused, and never ignored`() async throws {
        let hosts = "postgresql://belfry@a.example,b.example:5433/relay"
        for (flag, value) in [("--storage-url", hosts), ("--storage-path", "a, b.sqlite,")] {
            let apart = try await decode([flag, value])
            let together = try await decode(["\(flag)=\(value)"])
            let found = flag == "--storage-url" ? apart.storageURL : apart.storagePath
            #expect(found == value)
            #expect(apart.storageURL == together.storageURL)
            #expect(apart.storagePath == together.storagePath)
        }
        let found = try await problems(["--http-port", "1,2"])
        #expect(
            found == [
                "http.port (--http-port, BELFRY_HTTP_PORT): \"1,2\" must be a whole number from 0 "
                    + "to 65535"
            ])
        try await withFile(#"{"http":{"metrics":true,"port":false,"host":null}}"#) { path in
            let kinds = try await problems(["--config", path])
            #expect(
                kinds == [
                    "http.metrics in \(path): true must be one of off, on",
                    "http.port in \(path): false must be a whole number from 0 to 65535",
                    "http.host in \(path): null must be a text that is not empty",
                ])
        }
        let text =
            #"{"http.port":1,"http":{"port":2,"host":{}},"nonsense":{},"rates":{},"limits":"#
            + #"{"deniedRecordTypes":["a",null,["b"]]}}"#
        try await withFile(text) { path in
            let said = try await problems(["--config", path])
            #expect(
                said == [
                    "http.port in \(path) is given twice",
                    "http.host in \(path): {} must be a text that is not empty",
                    "nonsense in \(path) is not a setting; see docs/configuration.md",
                    "limits.deniedRecordTypes in \(path): null must be a list of texts, divided by "
                        + "commas",
                ])
        }
        try await withFile(#"{"http":{"port":9},"limits":{},"live":{}}"#) { path in
            let configuration = try await decode(["--config", path])
            #expect(configuration.http.port == 9)
        }
        try await withFile("{}") { path in
            let said = try await problems(["--config", path])
            #expect(said == [])
        }
    }

    @Test func `settings that no request could satisfy together are refused`() async throws {
        let found = try await problems(["--http-body-megabytes", "8"])
        #expect(
            found == [
                "http.bodyMegabytes: with 8 MiB, one body can have at most 3670016 bytes, but "
                    + "limits.webhookBytes allows 4194304; raise the first setting or lower the "
                    + "second"
            ])
        #expect(try await problems(["--http-body-megabytes", "10"]) == [])
        for (bytes, count) in [("3670016", 0), ("3670017", 1)] {
            let found = try await problems(
                ["--http-body-megabytes", "8", "--limits-webhook-bytes", bytes])
            #expect(found.count == count)
        }
    }

    @Test func `rates of containers are told once, and as they can be set`() async throws {
        let rule = "must have the form CONTAINER=KEYS/USERS, with a rate of keys and a rate of "
        let most = "users, each from 0 to 1000000"
        #expect(
            try await problems(["--rates-containers", "a=1000000/0,b=1000001/1,a=2/2"]) == [
                "rates.containers: \"b=1000001/1\" \(rule)\(most)",
                "rates.containers: a is given twice",
            ])
        #expect(try await problems(["--rates-containers", "a=1/1,b=0/0"]) == [])
    }

    @Test func `an unknown setting is refused`() async throws {
        let flag = try await problems(["--htp-port", "1"])
        #expect(flag == ["--htp-port is not a setting; did you mean --http-port?"])
        try await withFile(#"{"http":{"prot":1}}"#) { path in
            let member = try await problems(["--config", path])
            #expect(member == ["http.prot in \(path) is not a setting; did you mean http.port?"])
        }
        let missing = try await problems(["--config", "/nowhere.json"])
        #expect(missing == ["the file /nowhere.json cannot be read: there is no such file"])
        let empty = try await problems(environment: ["BELFRY_CONFIG": ""])
        #expect(empty == [#"config (--config, BELFRY_CONFIG): "" must be the name of a file"#])
        let folder = try await problems(["--config", "/proc"])
        #expect(folder == ["the file /proc cannot be read: it is a folder"])
    }

    @Test func `the sign-in setting is the URL of a page`() async throws {
        for text in [
            "https://app.example/sign-in?next=1#top", "http://127.0.0.1:3000", "https://a.example/",
            "https://a.example?next=/", "http://[::1]:3000/in",
        ] {
            #expect(try await decode(["--sign-in-url", text]).signInURL == text)
        }
        for text in [
            "sign-in", "/sign-in", "app.example/sign-in", "javascript:alert(1)", "https://",
            "https:///sign-in", "https://a.example/sign in", "https://user@a.example/",
            "https://a.example:99999/", "ftp://a.example/",
        ] {
            #expect(
                try await problems(["--sign-in-url", text]) == [
                    "signIn.url (--sign-in-url, BELFRY_SIGN_IN_URL): \"\(text)\" must be a URL "
                        + "that begins with https:// or http://"
                ])
        }
    }

    /// Otherwise each push would wait as long as for a gateway that is away.
    @Test func `a proxy that is no URL of one is refused at the start`() async throws {
        for text in [
            "http://proxy", "http://proxy:3128/", "https://proxy.example:443",
            "http://user:p%40ss@proxy:3128", "http://user@[::1]:3128",
        ] {
            #expect(try await problems(["--apns-proxy", text]) == [], "\(text)")
        }
        for text in [
            "x y", "proxy:3128", "ftp://proxy", "http://", "http://user:hush@",
            "http://proxy:99999", "http://a b@proxy", "http://user:hu@sh@proxy",
            "http://proxy/path",
        ] {
            #expect(
                try await problems(["--apns-proxy", text]) == [
                    "apns.proxy (--apns-proxy, BELFRY_APNS_PROXY): the value must be a URL that "
                        + "begins with http:// or https://, without a path"
                ])
        }
    }

    @Test func `a file from a shell's process substitution is read`() async throws {
        let pipe = Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: Data(#"{"http":{"port":4711}}"#.utf8))
        try pipe.fileHandleForWriting.close()
        let path = "/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)"
        #expect(try await decode(["--config", path]).http.port == 4711)
        // The descriptor must stay open until here.
        try pipe.fileHandleForReading.close()
        let endless = try await problems(["--config", "/dev/zero"])
        #expect(endless == ["the file /dev/zero cannot be read: File too large"])
    }

    @Test func `the key for secrets may come by a pipe, and its size is limited`() async throws {
        let pipe = Pipe()
        let key = Data(repeating: 7, count: 32).base64EncodedString()
        try pipe.fileHandleForWriting.write(contentsOf: Data("\(key)\n".utf8))
        try pipe.fileHandleForWriting.close()
        let path = "/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)"
        #expect(try await problems(["--secrets-key-file", path]).isEmpty)
        // The descriptor must stay open until here.
        try pipe.fileHandleForReading.close()
        let endless = try await problems(["--secrets-key-file", "/dev/zero"])
        #expect(
            endless == ["secrets.keyFile: the file /dev/zero cannot be read: File too large"])
    }

    @Test func `a file that is no JSON object in UTF-8 is refused by name`() async throws {
        try await withFile("[]") { path in
            let list = try await problems(["--config", path])
            #expect(list == ["the file \(path) must contain a JSON object"])
        }
        try await withFile("\u{FEFF}{}") { path in
            let marked = try await problems(["--config", path])
            #expect(
                marked == [
                    "the file \(path) begins with a byte order mark: save it as UTF-8 without one"
                ])
        }
    }

    @Test(arguments: ["\r", "\n", " ", "\u{7F}"])
    func `a token that no header can carry is refused`(end: String) async throws {
        let token = String(repeating: "a", count: 24)
        #expect(try await problems(["--admin-token", token]) == [])
        let found = try await problems(["--admin-token", token + end])
        #expect(
            found == [
                "admin.token (--admin-token, BELFRY_ADMIN_TOKEN): the value must be a text of 24 "
                    + "bytes or more on one line, without spaces around it"
            ])
    }

    @Test func `variables without an effect are reported and stop nothing`() async throws {
        let values = try await ConfigurationValues.gather(
            arguments: [],
            environment: [
                "BELFRY_HTTP_PROT": "1", "BELFRY_NONSENSE_ALL_OVER": "x", "BELFRY_CONFIGS": "y",
                "BELFRY_HTTP_PORT": "8080", "BELFRY_SOURCE_SECRET": "s", "BELFRY_PORT": "tcp://x",
                "BELFRY_PORT_8080_TCP": "tcp://x", "BELFRY_SERVICE_HOST": "10.0.0.1",
                "BELFRYX": "z", "BELFRY_SOURCE_SECERT": "s", "BELFRY_CRASH_AT": "x",
            ])
        #expect(
            values.remarks == [
                "BELFRY_CONFIGS is not a setting; did you mean BELFRY_CONFIG?",
                "BELFRY_HTTP_PROT is not a setting; did you mean BELFRY_HTTP_PORT?",
                "BELFRY_NONSENSE_ALL_OVER is not a setting; see docs/configuration.md",
                "BELFRY_SOURCE_SECERT is not a setting; did you mean BELFRY_SOURCE_SECRET?",
            ])
        #expect(try RelayConfiguration(values).http.port == 8080)
    }

    @Test func `the documentation lists every setting as in the code`() throws {
        let text = try Documentation.text("docs/configuration.md")
        for key in ConfigurationKeys.all {
            let value = key.defaultText.map { "`\($0)`" } ?? "–"
            let row =
                "| `\(key.name)` | `\(key.variable)` | \(value) | \(key.rule) | \(key.summary) |"
            #expect(text.contains(row), "missing or different: \(row)")
        }
    }

    @Test func `the documentation lists every error code with its status`() throws {
        let text = try Documentation.text("docs/errors.md")
        for code in ServerErrorCode.allCases {
            #expect(text.contains("| `\(code.rawValue)` | \(code.httpStatus) |"))
        }
    }

    @Test func `the documentation lists every call`() async throws {
        let text = try Documentation.text("docs/http-api.md")
        try await TestRelay.with { relay in
            for route in RelayRouter.routes(relay.dependencies) {
                #expect(text.contains("`\(route.method) \(route.path)`"), "\(route.path)")
            }
        }
    }
}

/// The documents of the repository.
enum Documentation {
    static func text(_ path: String, from file: String = #filePath) throws -> String {
        let root = URL(filePath: file).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }
}
