import Crypto
import Foundation
package import RelayModel

/// A device of a user of a ``SampleContainer``, whose token is made from its name.
package struct SampleDevice: Sendable {
    /// The device's ID.
    package let name: String
    /// The user's record name.
    package let owner: String

    /// The devices that every container begins with.
    package static let usual = [
        SampleDevice(name: "phone", owner: "alice"), SampleDevice(name: "tablet", owner: "alice"),
        SampleDevice(name: "bobs", owner: "bob"),
    ]

    /// Creates a device of a user.
    package init(name: String, owner: String) {
        self.name = name
        self.owner = owner
    }

    /// The device token: the name in hexadecimal digits, filled up with zeros.
    package var token: String {
        let digits = Hexadecimal.encode(Array(name.utf8))
        return digits + String(repeating: "0", count: 64 - digits.count)
    }

    /// Returns the name of the device that has `token`.
    package static func name(of token: String) -> String? {
        guard let bytes = Hexadecimal.decode(token) else { return nil }
        return String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
}

/// A container as an operator sets it up over HTTP, with keys, a change source, and users' devices.
package struct SampleContainer: Sendable {
    /// The secret of user tokens.
    package static let userSecret = "a shared secret of at least 32 bytes"

    /// The container.
    package let key: ContainerKey
    /// The client that calls the relay; its ports change when the relay is started again.
    package var client: RelayClient
    /// The API token that clients send beside their user token.
    package let apiToken: String

    /// The path of the container's resources on the operator's listener.
    package var path: String { "containers/\(key.container)/\(key.environment.rawValue)" }

    /// Sets a container up with a credential, an API token, and the source `database` of preset
    /// `belfry`.
    ///
    /// The parameter `shard` names the shard in which the container is created, if there are
    /// several.
    package static func create(
        _ name: String = "iCloud.com.example.Art", in environment: String = "development",
        on client: RelayClient, for gateway: SampleGateway, shard: String? = nil
    ) async throws -> SampleContainer {
        let key = ContainerKey(
            container: Fixtures.identifier(name),
            environment: environment == "production" ? .production : .development)
        let path = "containers/\(name)/\(environment)"
        try await client.administer(
            "PUT", path + (shard.map { "?shard=\($0)" } ?? ""),
            [
                "topics": [.string(String(name.dropFirst("iCloud.".count)))],
                "apns": [
                    "teamID": .string(SampleGateway.teamID), "keyID": .string(SampleGateway.keyID),
                    "privateKey": .string(gateway.signingKeyPEM),
                ], "userTokens": ["sharedSecret": .string(userSecret)],
            ]
        ).expect(201)
        // The relays of other shards learn of the container later, which takes longer on a busy
        // machine.
        if shard != nil {
            _ = try await Turns.yield {
                try await client.administer("GET", path).status == 200
            }
        }
        let made = try await client.administer("POST", "\(path)/keys", ["kind": "apiToken"])
            .expect(201)
        guard case .string(let apiToken)? = made["secret"] else { throw UnexpectedReply(made) }
        let container = SampleContainer(key: key, client: client, apiToken: apiToken)
        try await container.set(source: "database", ["preset": "belfry"])
        return container
    }

    /// Saves a change source without verification.
    package func set(source name: String, _ definition: JSONObject) async throws {
        var definition = definition
        definition["verification"] = ["scheme": "none"]
        try await client.administer("PUT", "\(path)/sources/\(name)", .object(definition))
            .expect(201)
    }

    // MARK: Clients

    /// Registers a device for its owner.
    @discardableResult
    package func register(_ device: SampleDevice) async throws -> RelayClient.Reply {
        try await call(
            "tokens/register",
            [
                "apnsEnvironment": .string(key.environment.rawValue),
                "deviceID": .string(device.name),
                "apnsToken": .string(device.token),
            ], as: device.owner, in: nil
        ).expect(200)
    }

    /// Saves subscriptions, all of which must be accepted, and returns the answer.
    @discardableResult
    package func save(
        _ subscriptions: JSONValue..., as user: String = "alice", in database: String = "public"
    ) async throws -> RelayClient.Reply {
        let operations = subscriptions.map { subscription -> JSONValue in
            ["operationType": "create", "subscription": subscription]
        }
        let reply = try await call(
            "subscriptions/modify", ["operations": .array(operations)], as: user, in: database
        ).expect(200)
        guard !reply.text.contains("serverErrorCode") else { throw UnexpectedReply(reply) }
        return reply
    }

    /// Returns the IDs of a user's subscriptions.
    package func subscriptionIDs(
        of user: String = "alice", in database: String = "public"
    ) async throws -> [String] {
        let reply = try await call("subscriptions/list", nil, as: user, in: database).expect(200)
        guard case .array(let entries)? = reply["subscriptions"] else { return [] }
        return entries.compactMap { entry in
            guard case .string(let id)? = entry.value(at: ["subscriptionID"]) else { return nil }
            return id
        }
    }

    /// Makes a call of a user's client: POST with a body, else GET.
    package func call(
        _ action: String, _ body: JSONValue?, as user: String, in database: String?
    ) async throws -> RelayClient.Reply {
        try await client.call(
            body == nil ? "GET" : "POST", target(of: action, as: user, in: database),
            body: body?.text)
    }

    /// Returns the request target of a call by a user's client.
    package func target(of action: String, as user: String, in database: String?) -> String {
        let module = database == nil ? "device" : "database"
        let place = database.map { "/\($0)" } ?? ""
        return "/\(module)/1/\(key.container)/\(key.environment.rawValue)\(place)/\(action)"
            + "?ckAPIToken=\(apiToken)&ckWebAuthToken=\(Self.userToken(user))"
    }

    /// Returns a user token as the application's identity provider would issue it, valid until
    /// 2099.
    package static func userToken(_ user: String) -> String {
        func part(_ bytes: [UInt8]) -> String {
            Base64.encode(bytes).replacing("+", with: "-").replacing("/", with: "_")
                .replacing("=", with: "")
        }
        let claims: JSONValue = ["sub": .string(user), "exp": 4_102_444_800]
        let text = part(Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8)) + "." + part(claims.utf8)
        let code = HMAC<SHA256>.authenticationCode(
            for: Array(text.utf8), using: SymmetricKey(data: Array(userSecret.utf8)))
        return "\(text).\(part(Array(code)))"
    }

    // MARK: Changes

    /// Posts a webhook.
    @discardableResult
    package func post(
        _ body: JSONValue, to source: String = "database", headers: [String: String] = [:],
        expecting status: Int = 200
    ) async throws -> RelayClient.Reply {
        try await client.call(
            "POST", "/changes/1/\(key.container)/\(key.environment.rawValue)/\(source)",
            headers: headers.merging(["Content-Type": "application/json"]) { given, _ in given },
            body: body.text
        ).expect(status)
    }
}

extension RelayClient.Reply {
    /// Returns the reply itself if it has this status.
    ///
    /// - Throws: ``UnexpectedReply`` otherwise.
    @discardableResult
    package func expect(_ status: Int) throws -> RelayClient.Reply {
        guard self.status == status else { throw UnexpectedReply(self) }
        return self
    }
}

/// An answer of the relay that the test did not expect.
package struct UnexpectedReply: Error, CustomStringConvertible {
    /// The status and body of the answer.
    package let description: String

    package init(_ reply: RelayClient.Reply) {
        description = "\(reply.status): \(reply.text)"
    }
}

/// Subscriptions and changes as JSON.
extension JSONValue {
    /// Returns a query subscription on artworks that shows an alert.
    package static func query(
        _ id: String, _ predicate: String? = nil, firesOn: [String] = ["create"],
        info: JSONObject = ["alertBody": "New"], adding members: JSONObject = [:]
    ) -> JSONValue {
        var query: JSONObject = ["recordType": "Artwork"]
        query["predicate"] = predicate.map { .string($0) }
        var object: JSONObject = [
            "subscriptionID": .string(id), "subscriptionType": "query", "query": .object(query),
            "firesOn": .array(firesOn.map { .string($0) }), "notificationInfo": .object(info),
        ]
        for member in members.members { object[member.name] = member.value }
        return .object(object)
    }

    /// Returns a change of an artwork in the relay's own format.
    package static func change(
        _ operation: String, _ name: String, _ fields: JSONObject = ["artist": "artist-1"],
        adding members: JSONObject = [:]
    ) -> JSONValue {
        var object: JSONObject = [
            "operation": .string(operation), "recordType": "Artwork", "recordName": .string(name),
            operation == "delete" ? "before" : "after": .object(fields),
        ]
        for member in members.members { object[member.name] = member.value }
        return .object(object)
    }
}
