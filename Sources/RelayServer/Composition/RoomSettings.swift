import Delivery
import FoundationEssentials
import Gateway
import Logging
import NIOSSL
import RelayModel

//  Converts the configuration to the settings of the rooms.

extension CurlGatewaySettings {
    init(_ access: RelayConfiguration.GatewayAccess) throws(ConfigurationError) {
        self.init()
        development = try Self.endpoint(access.url(of: .development), key: "apns.development.url")
        production = try Self.endpoint(access.url(of: .production), key: "apns.production.url")
        if let file = access.caFile {
            // libcurl would report it only at the first push.
            guard FileManager.default.isReadableFile(atPath: file) else {
                throw ConfigurationError(["apns.caFile: the file \(file) cannot be read"])
            }
            guard let authorities = try? NIOSSLCertificate.fromPEMFile(file), !authorities.isEmpty
            else {
                throw ConfigurationError([
                    "apns.caFile: the file \(file) has no readable certificate in PEM form "
                        + "(-----BEGIN CERTIFICATE-----)"
                ])
            }
            caFile = file
        }
        connectionsPerCredential = access.connections
        proxy = access.proxy.map(ConcealedText.init)
    }

    private static func endpoint(
        _ text: String, key: String
    ) throws(ConfigurationError) -> GatewayEndpoint {
        guard let endpoint = GatewayEndpoint(text) else {
            throw ConfigurationError([
                "\(key): \"\(text)\" must be https://HOST or https://HOST:PORT"
            ])
        }
        return endpoint
    }
}

extension DeliverySettings {
    init(_ bounds: RelayConfiguration.DeliveryBounds) {
        self.init()
        window = bounds.inFlight
        rangeWindow = bounds.rangeInFlight
        retryWindow = bounds.retryInFlight
        silentPushesPerHour = bounds.silentPushesPerHour
    }
}

extension Logger {
    /// Logs what an operator should know about the gateway's connections.
    func log(_ event: GatewayEvent) {
        switch event {
        case .connected(let pool, let connection):
            info("gateway connected", metadata: ["pool": "\(pool)", "connection": "\(connection)"])
        case .retired(let pool, let connection, let cause, _, let answered):
            info(
                "gateway connection retired",
                metadata: [
                    "pool": "\(pool)", "connection": "\(connection)", "cause": "\(cause)",
                    "answered": .stringConvertible(answered),
                ])
        case .backingOff(let pool, let cause, let pause):
            warning(
                "cannot use the gateway; trying again after a pause",
                metadata: ["pool": "\(pool)", "cause": "\(cause)", "pause": "\(pause)"])
        case .mintedProviderToken(let key):
            info(
                "minted a provider token",
                metadata: ["team": "\(key.teamID)", "key": "\(key.keyID)"])
        case .reusedProviderToken(let key, let age):
            info(
                "reused a provider token",
                metadata: ["team": "\(key.teamID)", "key": "\(key.keyID)", "age": "\(age)"])
        case .clockIsWrong(let key, let age):
            warning(
                "the gateway rejects a new provider token as expired: check this machine's clock",
                metadata: ["team": "\(key.teamID)", "key": "\(key.keyID)", "age": "\(age)"])
        case .widthChanged(let pool, let width):
            debug(
                "gateway width changed",
                metadata: ["pool": "\(pool)", "width": .stringConvertible(width)])
        case .allowanceChanged(let pool, let requests):
            info(
                "the gateway ends connections after a number of requests",
                metadata: ["pool": "\(pool)", "replacedAfter": .stringConvertible(requests)])
        }
    }
}
