import Delivery
import RelayModel

extension [HaltInForce] {
    /// Returns the halts of one container, or all of them, as JSON.
    func json(of container: ContainerKey? = nil) -> JSONValue {
        .array(filter { container == nil || $0.container == container }.map(\.json))
    }
}

extension HaltInForce {
    var json: JSONValue {
        var object: JSONObject = [
            "container": .string(container.container.rawValue),
            "environment": .string(container.environment.rawValue),
        ]
        switch scope {
        case .container(let gateway):
            object["scope"] = "credential"
            object["apnsEnvironment"] = .string(gateway.rawValue)
        case .gateway(let gateway):
            object["scope"] = "gateway"
            object["apnsEnvironment"] = .string(gateway.rawValue)
        case .topic(let topic, let gateway):
            object["scope"] = "topic"
            object["apnsEnvironment"] = .string(gateway.rawValue)
            object["topic"] = .string(topic)
        }
        object["reason"] = .string(reason)
        object["since"] = .string(since.iso8601)
        object["until"] = .string(until.iso8601)
        object["askedUntil"] = asked.map { .string($0.iso8601) }
        return .object(object)
    }
}
