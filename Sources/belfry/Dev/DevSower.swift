import AsyncHTTPClient
import FoundationEssentials
import NIOCore
import NIOHTTP1
import RelayModel
import RelayServer

/// Sows a seed in a running sandbox with the calls of an operator, of users and of a database.
///
/// So the relay applies the same checks as to their calls. Sowing a seed again changes nothing:
/// existing items are replaced, and a change is recognised by its position as long as the relay
/// remembers it.
struct DevSower: Sendable {
    let seed: DevSeed
    let sandbox: DevSandbox
    let port: Int
    let adminPort: Int
    /// The moment until which the users' tokens are valid.
    let expiry: Timestamp

    /// The number of changes in one webhook.
    private static let changesPerCall = 100

    private var secrets: DevSecrets { sandbox.secrets }
    private var place: String { "\(DevSandbox.container)/development" }

    /// Sows everything.
    ///
    /// - Returns: A summary of what was sown.
    /// - Throws: ``DevFailure`` with the place of a refused item, and the reason.
    func sow() async throws -> String {
        if let schema = seed.schema { try await sow(schema) }
        for (index, device) in seed.devices.enumerated() { try await sow(device, index) }
        var warnings: [String] = []
        for (index, subscription) in seed.subscriptions.enumerated() {
            warnings += try await sow(subscription, index)
        }
        let known = try await sowChanges()
        var parts: [String] = seed.schema == nil ? [] : ["a schema"]
        parts += [
            (seed.devices.count, "device"), (seed.subscriptions.count, "subscription"),
        ].filter { $0.0 > 0 }.map(Self.counted)
        if !seed.changes.isEmpty {
            let again = known > 0 ? " (\(known) of them known already)" : ""
            parts.append(Self.counted(seed.changes.count, "change") + again)
        }
        let sown = parts.isEmpty ? "nothing" : parts.joined(separator: ", ")
        return (["Sown from \(seed.name): \(sown)."] + warnings).joined(separator: "\n")
    }

    private static func counted(_ number: Int, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }

    private func sow(_ schema: JSONValue) async throws {
        let call = AdministrationCall.replaceSchema
        let parts = ["container": DevSandbox.container, "environment": "development"]
        let answer = try await send(
            call.method, "http://127.0.0.1:\(adminPort)\(call.target(parts))", schema,
            bearer: secrets.adminToken)
        guard answer.status >= 300 else { return }
        throw refused("schema", answer.json)
    }

    private func sow(_ device: DevSeed.SeedDevice, _ index: Int) async throws {
        let answer = try await send(
            "POST", url("/device/1/\(place)/tokens/register", of: device.user),
            [
                "apnsEnvironment": "development",
                "apnsToken": .string(sandbox.token(of: device)),
                "deviceID": .string(device.id.rawValue),
            ])
        guard answer.status >= 300 else { return }
        throw refused("devices[\(index)]", answer.json)
    }

    /// Creates a subscription, or updates the one with its ID.
    ///
    /// - Returns: Warnings about its condition.
    private func sow(_ seeded: DevSeed.SeedSubscription, _ index: Int) async throws -> [String] {
        let url = url(
            "/database/1/\(place)/\(seeded.database.rawValue)/subscriptions/modify",
            of: seeded.user)
        for type in ["create", "update"] {
            let answer = try await send(
                "POST", url,
                [
                    "operations": [
                        [
                            "operationType": .string(type),
                            "subscription": .object(seeded.subscription),
                        ]
                    ]
                ])
            let result = Self.first("subscriptions", of: answer.json) ?? answer.json
            guard case .object(let object) = result, let code = object["serverErrorCode"] else {
                return warnings(in: result, of: index)
            }
            if type == "create", code == "EXISTS" { continue }
            throw refused("subscriptions[\(index)]", result)
        }
        return []
    }

    /// Returns the warnings about a saved subscription, except those about unknown fields and
    /// types: the changes that introduce them have not been sown yet.
    private func warnings(in saved: JSONValue, of index: Int) -> [String] {
        guard case .object(let object) = saved, case .array(let warnings)? = object["warnings"]
        else { return [] }
        return warnings.compactMap { warning in
            guard case .object(let members) = warning, case .string(let kind)? = members["warning"],
                case .string(let reason)? = members["reason"],
                ["neverTrue", "foreignWildcard", "unlikelyDate"].contains(kind)
            else { return nil }
            var text = "warning: subscriptions[\(index)]: \(reason)"
            if case .string(let hint)? = members["hint"] { text += "; \(hint)" }
            return text
        }
    }

    /// Posts the changes; returns how many were already known.
    private func sowChanges() async throws -> Int {
        var known = 0
        for start in stride(from: 0, to: seed.changes.count, by: Self.changesPerCall) {
            let end = min(start + Self.changesPerCall, seed.changes.count)
            let answer = try await send(
                "POST", sandbox.sourceURL(port: port), .array(Array(seed.changes[start..<end])),
                bearer: secrets.sourceToken)
            guard case .object(let object) = answer.json,
                case .array(let results)? = object["results"]
            else { throw refused("changes[\(start)] to [\(end - 1)]", answer.json) }
            for (offset, result) in results.enumerated() {
                guard case .object(let result) = result else { continue }
                switch result["status"] {
                case "refused", "conflict":
                    throw refused("changes[\(start + offset)]", .object(result))
                case "duplicate": known += 1
                default: continue
                }
            }
        }
        return known
    }

    // MARK: Calls

    private func url(_ path: String, of user: UserID) -> String {
        let token = sandbox.userToken(user.rawValue, until: expiry)
        return "http://127.0.0.1:\(port)\(path)?ckAPIToken=\(secrets.apiToken)"
            + "&ckWebAuthToken=\(token)"
    }

    private func send(
        _ method: String, _ url: String, _ body: JSONValue, bearer: String? = nil
    ) async throws -> (status: Int, json: JSONValue) {
        var request = HTTPClientRequest(url: url)
        request.method = .init(rawValue: method)
        if let bearer { request.headers.add(name: "Authorization", value: "Bearer \(bearer)") }
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(bytes: body.utf8))
        do {
            let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
            let bytes = try await response.body.collect(upTo: 4 * 1024 * 1024)
            return (
                Int(response.status.code),
                (try? JSONValue(stored: Array(bytes.readableBytesView))) ?? .null
            )
        } catch {
            // If the sandbox is being ended, the connection error is irrelevant.
            let isEnded = Task.isCancelled || error is CancellationError
            throw DevFailure(
                "\(seed.name): the sandbox ended before all of it was sown"
                    + (isEnded ? "" : " (\(ReachingFailure(error)))"))
        }
    }

    private static func first(_ name: String, of answer: JSONValue) -> JSONValue? {
        guard case .object(let object) = answer, case .array(let list)? = object[name] else {
            return nil
        }
        return list.first
    }

    /// Returns the relay's reason, with the place in the seed instead of that in the call.
    private func refused(_ place: String, _ answer: JSONValue) -> DevFailure {
        var reason = answer.text
        if case .object(let object) = answer, case .string(let text)? = object["reason"] {
            reason = text
            if case .string(let path)? = object["path"], !path.isEmpty {
                reason = "\(path): \(text)"
            }
        }
        let inner = reason.trimmingPrefix(#/(operations)?\[[0-9]+\](?=[.:\[])/#)
        let isPath = inner.first == "." || inner.first == ":"
        return DevFailure("\(seed.name): \(place)\(isPath ? "" : ": ")\(inner)")
    }
}
