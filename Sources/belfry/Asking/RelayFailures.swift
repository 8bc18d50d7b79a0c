import ArgumentParser
import Gateway
import RelayServer
import Storage

/// Reports what keeps a relay from running, in the same words for all commands that run one.
enum RelayFailures {
    /// Runs `body`.
    ///
    /// A failure that an operator can repair is printed on the standard error and ends the process
    /// with its exit code (docs/operations.md).
    static func told(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as ConfigurationError {
            throw ending(.configuration, error)
        } catch let error as StorageError {
            throw ending(.unavailable, error)
        } catch let error as AddressError {
            throw ending(.unavailable, error)
        } catch let error as GatewaySetupError {
            throw ending(.unavailable, error)
        }
    }

    private static func ending(
        _ kind: CommandFailure.Kind, _ error: some Error & CustomStringConvertible
    ) -> any Error {
        do {
            let text = ShownText.plain("belfry: \(error)\n")
            try StandardStreams.write(Array(text.utf8), .error)
        } catch {
            return error
        }
        return ExitCode(kind.rawValue)
    }
}
