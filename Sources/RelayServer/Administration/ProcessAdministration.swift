import Logging
import RelayModel

/// What an operator can change in the running process without a restart: the log level and the
/// certificate.
struct ProcessAdministration: AdministrationTable {
    /// The levels of the log; `nil` if no relay runs.
    let levels: LogLevels?
    /// Reads the files of the certificate again, and throws what is wrong with them; `nil` if there
    /// are no such files.
    let renewCertificates: (@Sendable () throws -> Bool)?

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.showLogging, respond: show),
            AdministrationRoute(.setLogging, respond: set),
            AdministrationRoute(.renewCertificates, respond: renew),
        ]
    }

    private func show(_ request: RelayRequest) async throws -> RelayAnswer {
        answer(try running())
    }

    private func set(_ request: RelayRequest) async throws -> RelayAnswer {
        let levels = try running()
        let body = try AdministrationCall.setLogging.body(of: request)
        guard let value = body.object["level"] else {
            throw APIError(
                .badRequest, "level: is required; null goes back to the level of the configuration")
        }
        let minutes = try body.integer("minutes")
        if let minutes, !(1...10_080).contains(minutes) {
            throw APIError(.badRequest, "minutes: must be 1 to 10080, found \(minutes)")
        }
        let span = minutes.map { Duration.seconds($0 * 60) }
        if value == .null {
            guard minutes == nil else {
                throw APIError(.badRequest, "minutes: cannot be given with the level null")
            }
            levels.set(nil)
        } else {
            guard case .string(let word) = value,
                let place = LogLevels.words.firstIndex(of: word)
            else {
                throw APIError(
                    .badRequest,
                    "level: \(value.text.shortened) is unknown; allowed are "
                        + LogLevels.words.joined(separator: ", ") + ", null")
            }
            levels.set(LogLevels.levels[place], for: span)
        }
        return answer(levels)
    }

    private func running() throws(APIError) -> LogLevels {
        guard let levels else { throw APIError(.badRequest, "no relay is running here") }
        return levels
    }

    private func answer(_ levels: LogLevels) -> RelayAnswer {
        let standing = levels.standing()
        var json: JSONObject = [
            "level": .string(standing.level.rawValue),
            "configured": .string(standing.configured.rawValue),
        ]
        json["until"] = standing.until.map { .string($0.iso8601) }
        return RelayAnswer(json: .object(json))
    }

    private func renew(_ request: RelayRequest) async throws -> RelayAnswer {
        guard let renewCertificates else {
            throw APIError(
                .badRequest, "this relay serves no TLS itself (tls.certificateFile is not set)")
        }
        return RelayAnswer(json: ["renewed": .bool(try renewCertificates())])
    }
}
