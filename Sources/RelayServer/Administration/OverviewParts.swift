import Delivery
package import LogShipping
import NIOSSL
package import RelayModel
package import Storage

/// What the relay's process is short of, or stands at.
package struct RelayHealth: Sendable {
    /// Whether it can serve, and if not, why.
    package var readiness: Readiness
    /// What the store takes of its disk; `nil` where no relay runs.
    package var footprint: StoreFootprint?
    /// The room on the disk that is kept for settling.
    package var reserveBytes: UInt64
    /// How continuous backup stands; `nil` without one.
    package var backup: ShippingStatus?
    /// When the listeners' certificate ends; `nil` without one.
    package var tlsUntil: Timestamp?
    /// By how much the accounts of deliveries differ; `nil` where nobody has looked yet.
    package var difference: Int?
    /// Rows that were set aside since the start, because they cannot be read.
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
    /// The reasons why the relay cannot serve, by part; none if it can.
    var unready: JSONValue {
        guard case .notReady(let reasons) = readiness else { return .object([:]) }
        return .object(
            JSONObject(reasons.map { ($0.key, .string($0.value)) }.sorted { $0.0 < $1.0 }))
    }

    /// How many relays know of the store; null where there can be one only.
    var nodes: JSONValue { footprint?.nodes.map { .integer(Int64($0)) } ?? .null }

    /// What other relays of the store have set otherwise, a sentence for each.
    var disagreements: JSONValue {
        .array((footprint?.disagreements ?? []).map { .string($0) })
    }

    /// By how much the accounts of deliveries differ; null where nobody has looked yet.
    var accounts: JSONValue { difference.map { .integer(Int64($0)) } ?? .null }

    /// Until when the listeners' certificate is valid; null without one.
    var tls: JSONValue { tlsUntil.map { ["expiresAt": .string($0.iso8601)] } ?? .null }

    /// How continuous backup stands.
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

    /// The sizes, as far as they are known.
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

/// Whether a container can send, by what is known.
enum SendingState: String, CaseIterable {
    /// The last answer of the gateway says so.
    case yes
    /// The last attempt failed for the container, not for a push or device.
    case no
    /// There is a credential, and nothing was sent since the start.
    case untried
    /// There is no credential, and none was missed since the start.
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
    /// The members that tell of it.
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
    /// With what the container sends, and until when that is valid; `null` without a credential.
    var credentialJSON: JSONValue {
        if let certificate {
            var object: JSONObject = ["kind": "certificate"]
            object["expiresAt"] = certificate.expiry.map { .string($0.iso8601) }
            return .object(object)
        }
        // A signing key of APNs is valid until it is revoked.
        return credential == nil ? .null : ["kind": "key"]
    }
}

extension ProviderCertificate {
    /// When the certificate ends; `nil` if it cannot be read.
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
