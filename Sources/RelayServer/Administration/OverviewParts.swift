import Delivery
package import LogShipping
import NIOSSL
package import RelayModel
package import Storage

/// The health of the relay's process: readiness, disk, backup, certificate, accounts.
package struct RelayHealth: Sendable {
    /// Whether the relay can serve, and if not, why.
    package var readiness: Readiness
    /// The space that the store uses on its disk; `nil` if no relay runs.
    package var footprint: StoreFootprint?
    /// The disk space that is reserved for settling, in bytes.
    package var reserveBytes: UInt64
    /// The state of continuous backup; `nil` if there is none.
    package var backup: ShippingStatus?
    /// The expiry of the listeners' certificate; `nil` without one.
    package var tlsUntil: Timestamp?
    /// The difference between the accounts of deliveries; `nil` if they were not compared yet.
    package var difference: Int?
    /// The number of rows that were set aside since the start because they are unreadable.
    package var unreadableRows = 0

    package init(
        readiness: Readiness = .ready, footprint: StoreFootprint? = nil, reserveBytes: UInt64 = 0,
        backup: ShippingStatus? = nil, tlsUntil: Timestamp? = nil
    ) {
        self.tlsUntil = tlsUntil
        self.backup = backup
        self.readiness = readiness
        self.footprint = footprint
        self.reserveBytes = reserveBytes
    }
}

extension RelayHealth {
    /// The reasons why the relay cannot serve, by part; empty if it can.
    var unready: JSONValue {
        guard case .notReady(let reasons) = readiness else { return .object([:]) }
        return .object(
            JSONObject(reasons.map { ($0.key, .string($0.value)) }.sorted { $0.0 < $1.0 }))
    }

    /// The number of relays that share the store; null if there can be only one.
    var nodes: JSONValue { footprint?.nodes.map { .integer(Int64($0)) } ?? .null }

    /// The settings that differ from those of the store's other relays, one sentence each.
    var disagreements: JSONValue {
        .array((footprint?.disagreements ?? []).map { .string($0) })
    }

    /// The difference between the accounts of deliveries; null if they were not compared yet.
    var accounts: JSONValue { difference.map { .integer(Int64($0)) } ?? .null }

    /// The expiry of the listeners' certificate; null without one.
    var tls: JSONValue { tlsUntil.map { ["expiresAt": .string($0.iso8601)] } ?? .null }

    /// The state of continuous backup.
    var backups: JSONValue {
        guard let backup else { return .null }
        var object: JSONObject = [
            "place": .string(backup.place), "bases": .integer(Int64(backup.bases)),
            "waitingBytes": .integer(Int64(backup.waitingBytes)),
            "intervalSeconds": .integer(backup.interval.components.seconds),
        ]
        object["chain"] = backup.chain.map { .string($0) }
        object["shippedUntil"] = backup.shippedUntil.map { .string($0.iso8601) }
        object["head"] = backup.head.map { .string($0.description) }
        object["lastBase"] = backup.lastBase.map { .string($0.iso8601) }
        object["failure"] = backup.failure?.json
        object["ending"] = backup.ending?.json
        return .object(object)
    }

    /// The sizes of the store's files and the free disk space, as far as they are known.
    var disk: JSONValue {
        guard let footprint else { return .null }
        var object: JSONObject = [
            "fileBytes": .integer(Int64(footprint.fileBytes)),
            "walBytes": .integer(Int64(footprint.walBytes)),
            "reserveBytes": .integer(Int64(clamping: reserveBytes)),
        ]
        object["freeBytes"] = footprint.freeBytes.map { .integer(Int64(clamping: $0)) }
        object["freeFiles"] = footprint.freeFiles.map { .integer(Int64(clamping: $0)) }
        return .object(object)
    }
}

/// Whether a container can send, as far as the relay knows.
enum SendingState: String, CaseIterable {
    /// The last answer of the gateway shows that it can.
    case yes
    /// The last attempt failed because of the container, not because of a push or device.
    case no
    /// There is a credential, but nothing was sent since the start.
    case untried
    /// There is no credential, and no delivery needed one since the start.
    case noCredential

    init(_ settings: ContainerSettings, _ answers: GatewayAnswers?) {
        if let last = answers?.last {
            self = last.kind == .failed ? .no : .yes
        } else {
            let hasCredential = settings.credential != nil || settings.certificate != nil
            self = hasCredential ? .untried : .noCredential
        }
    }
}

extension GatewayAnswers {
    /// The members that describe the answers.
    var json: JSONObject {
        var object: JSONObject = [:]
        for kind in Kind.allCases {
            object[kind.rawValue] = .integer(Int64(clamping: counts[kind, default: 0]))
        }
        object["lastAccepted"] = lastAccepted.map { .string($0.iso8601) }
        if let last {
            object["last"] = [
                "at": .string(last.at.iso8601), "kind": .string(last.kind.rawValue),
                "apnsEnvironment": .string(last.environment.rawValue),
                "status": .integer(Int64(last.status)), "reason": .string(last.reason),
                "meaning": .string(last.meaning),
            ]
        }
        return object
    }
}

extension ContainerSettings {
    /// The kind of the container's credential and its expiry; `null` without a credential.
    var credentialJSON: JSONValue {
        if let certificate {
            var object: JSONObject = ["kind": "certificate"]
            object["expiresAt"] = certificate.expiry.map { .string($0.iso8601) }
            return .object(object)
        }
        // A signing key of APNs is valid until it is revoked, so it has no expiry.
        return credential == nil ? .null : ["kind": "key"]
    }
}

extension ProviderCertificate {
    /// The expiry of the certificate; `nil` if it cannot be read.
    var expiry: Timestamp? {
        guard packing == .pem,
            let chain = try? NIOSSLCertificate.fromPEMBytes(bytes), let first = chain.first
        else { return nil }
        return Timestamp(seconds: Int64(first.notValidAfter))
    }
}

extension ShippingStatus.Failure {
    var json: JSONValue { ["at": .string(at.iso8601), "reason": .string(reason)] }
}
