import FoundationEssentials
import GatewaySimulator
import Glibc
import RelayModel
import RelayServer
import Storage

/// Runs the printed commands and judges the results.
struct DevRehearsal: Sendable {
    let tour: DevTour
    let sandbox: DevSandbox
    let gateway: SimulatedGateway
    let relay: Relay

    /// The time limit for a push, which normally takes milliseconds.
    private static let patience = Duration.seconds(30)

    /// - Throws: ``DevFailure`` with the expected result that did not occur.
    func run() async throws {
        StandardStreams.say("\n==> Running 1.")
        let saved = try await answer(to: tour.subscribe, holding: "activationPosition")
        StandardStreams.say(saved)
        StandardStreams.say("\n==> Running 2.")
        let appended = try await answer(to: tour.change, holding: "position")
        StandardStreams.say(appended)
        _ = try await gateway.pushes(count: 1, within: Self.patience)
        // Once the change is settled, all of its other deliveries are known as well.
        try await relay.waitUntilSettled(within: Self.patience)
        try judge(gateway.pushes)
        StandardStreams.say(
            "\n==> As expected: alices-tablet was pushed once, and no other device was.")
    }

    private func judge(_ pushes: [ReceivedPush]) throws {
        let names = pushes.map { sandbox.phone(with: $0.deviceToken) }
        guard names == ["alices-tablet"] else {
            throw DevFailure("alices-tablet should have been pushed once, but it was: \(names)")
        }
        guard pushes.allSatisfy({ $0.answer == .accept }) else {
            throw DevFailure("the gateway refused the push")
        }
    }

    private func answer(to command: String, holding word: String) async throws -> String {
        let text = try await Shell.run(command)
        guard text.contains("\"\(word)\""), !text.contains("serverErrorCode") else {
            throw DevFailure("the relay answered: \(text)")
        }
        return text
    }
}

/// Runs a line of shell script.
enum Shell {
    static func run(_ command: String) async throws -> String {
        closeOpenFiles()
        // The commands need bash, in which they are printed; `sh` of Debian is another shell.
        let script = "exec /bin/bash 2>&1 <<'BELFRY_END'\n\(command)\nBELFRY_END\n"
        guard let pipe = unsafe popen(script, "re") else {
            throw DevFailure("no command can be started: \(POSIXError.last.systemReason)")
        }
        let read = Result { try StandardStreams.readAll(unsafe fileno(pipe)) }
        // The shell is waited for, even after a read error.
        let status = unsafe pclose(pipe)
        let text = try read.get()
        guard status == 0 else {
            throw DevFailure("the command failed: \(String(decoding: text, as: UTF8.self))")
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Marks the open files of this process to be closed in the processes that it starts.
    ///
    /// Otherwise a child that inherited a listener would accept calls after the relay has ended,
    /// and never answer them.
    private static func closeOpenFiles() {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        for descriptor in names.compactMap({ Int32($0) }) where descriptor > STDERR_FILENO {
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        }
    }
}
