import FoundationEssentials
import LogShipping
import RelayModel
import RelayServer
import Storage

/// Reaches continuous backups with the settings of the relay.
enum BackupAccess {
    /// Returns the destination at `url`.
    ///
    /// - Throws: ``CommandFailure`` if the URL does not name a place for backups, or the
    ///   configuration is unusable.
    static func destination(
        _ url: String, config: String?
    ) async throws -> any BackupDestination {
        guard let place = BackupPlace(url) else {
            throw CommandFailure(.input, "\"\(url)\" must be \(BackupPlace.rule)")
        }
        do {
            let values = try await ConfigurationValues.gather(
                arguments: config.map { ["--config", $0] } ?? [],
                environment: ProcessInfo.processInfo.environment)
            let configuration = try RelayConfiguration(values)
            return PatientDestination(
                try place.destination(configuration.backup.bucket, now: World.real.now),
                clock: World.real.clock)
        } catch let error as ConfigurationError {
            throw CommandFailure(.configuration, "\(error)")
        } catch let error as DestinationFailure {
            throw CommandFailure(.configuration, "\(error)")
        }
    }

    /// Runs `body` and closes the destination.
    ///
    /// Its errors become failures of the command.
    static func told<Value>(
        _ destination: any BackupDestination, _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            let value = try await body()
            await destination.close()
            return value
        } catch {
            await destination.close()
            switch error {
            case let error as DestinationFailure:
                throw CommandFailure(.unavailable, "\(error)")
            case let error as BackupRefusal: throw CommandFailure(.refused, "\(error)")
            case let error as StorageError:
                throw CommandFailure.storage("\(destination.place) cannot be restored", error)
            default: throw error
            }
        }
    }
}
