import Foundation
import Testing

/// What a command decides from the configuration before it does anything.
@Suite(.timeLimit(.minutes(30))) struct ConfiguredCommandTests {
    @Test(arguments: [
        "", "no certificate\n",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ])
    func `a file of authorities without a certificate is refused at the start`(
        contents: String
    ) async throws {
        let folder = try Folder.make()
        let file = folder.appending(path: "ca.pem").path
        try Data(contents.utf8).write(to: URL(filePath: file))
        let ending = try await BuiltBelfry.run([
            "serve", "--storage-path", folder.appending(path: "relay.sqlite").path,
            "--http-port", "0", "--admin-port", "0", "--apns-ca-file", file,
        ])
        #expect(ending.code == 78)
        #expect(
            ending.complaint.contains(
                "apns.caFile: the file \(file) has no readable certificate in PEM form"))
    }

    @Test func `check examines the file that the configuration names`() async throws {
        let folder = try Folder.make()
        let store = folder.appending(path: "named.sqlite").path
        try await BuiltBelfry.makeStore(at: store)
        let created = try await BuiltBelfry.run(
            [
                "containers", "create", "-c", "iCloud.com.example.Art", "--topic",
                "com.example.Art", "--database", store,
            ], environment: ["BELFRY_STORAGE_DISK_RESERVE_MEGABYTES": "0"])
        #expect(created.code == 0, "\(created.complaint)")
        let configuration = folder.appending(path: "belfry.json").path
        try Data(#"{"storage":{"path":"\#(store)"}}"#.utf8)
            .write(to: URL(filePath: configuration))
        let byFile = try await BuiltBelfry.run(["check", "--config", configuration])
        #expect(byFile.code == 0 && byFile.output.hasSuffix("sound\n"), "\(byFile.complaint)")
        let byVariable = try await BuiltBelfry.run(
            ["check"], environment: ["BELFRY_STORAGE_PATH": store])
        #expect(byVariable.output == byFile.output)
        let missing = try await BuiltBelfry.run(["check", "--config", store + ".json"])
        #expect(missing.code == 78)
    }
}
