import Foundation
import GatewaySimulator
import RelayTestKit
import Testing

@testable import belfry

/// The version and build that an executable reports about itself.
@Suite(.timeLimit(.minutes(15))) struct BuildStampTests {
    @Test(arguments: [
        ("", BuildStamp.development, "belfry development (not packaged)"),
        ("\nabc", .development, "belfry development (not packaged)"),
        (
            "1.2.3\n0123456789abcdef0123456789abcdef01234567\n",
            BuildStamp(
                version: "1.2.3", commit: "0123456789abcdef0123456789abcdef01234567",
                isDirty: false),
            "belfry 1.2.3 (commit 0123456789ab)"
        ),
        (
            "1.2.3\nabc\ndirty\n", BuildStamp(version: "1.2.3", commit: "abc", isDirty: true),
            "belfry 1.2.3 (commit abc, dirty)"
        ),
        ("1.2.3", BuildStamp(version: "1.2.3", commit: "", isDirty: false), "belfry 1.2.3"),
        (
            "1.2.3\n\ndirty", BuildStamp(version: "1.2.3", commit: "", isDirty: true),
            "belfry 1.2.3 (dirty)"
        ),
    ]) func `a stamp has the version, the commit and whether files were modified`(
        text: String, stamp: BuildStamp, words: String
    ) {
        #expect(BuildStamp(text: text) == stamp)
        #expect(stamp.description == words)
    }

    @Test func `an executable built without a stamp says so`() async throws {
        let ending = try await BuiltBelfry.run(["--version"])
        #expect(ending.code == 0, "\(ending.complaint)")
        #expect(ending.output == "belfry development (not packaged)\n")
    }

    @Test func `the metrics say which build it is`() async throws {
        let store = try TemporaryStore()
        let gateway = try await SampleGateway.start(in: try Folder.make())
        let relay = try await ServedBelfry.start(
            on: store.path, for: gateway, ["--http-metrics": "on"])
        let metrics = try await relay.client.call("GET", "/metrics")
        let line =
            #"belfry_build_info{commit="",dirty="false",version="development"} 1"#
        #expect(metrics.text.split(separator: "\n").contains { $0 == line }, "\(metrics.text)")
        #expect(relay.logged.contains("belfry development"))
        #expect(await relay.end() == 0)
        await gateway.simulated.stop()
    }
}
