import HTTPTypes
import HummingbirdCore
import RelayModel

/// What a call is about, as far as its head says in whose store it is worked: a pure decision.
///
/// It reads a path as the router does, and names as the routes do, so that a call is handed to no
/// other store than the one whose routes would find what it names.
enum CallSubject: Sendable, Hashable {
    /// Something of a container.
    case container(ContainerKey)
    /// A container that is to be made if there is none, in the shard that is named.
    case creation(ContainerKey, shard: String?)
    /// What the store of this shard keeps.
    case shard(String)
    /// What waits for a web courier whose URL was made in this shard.
    case courier(shard: String)
    /// What somebody asks for whose session of the console was begun in this shard.
    case session(shard: String)
    /// Whatever the relay has that is asked.
    case relay

    /// The first words of paths in which a container and its environment follow `1`.
    private static let ofContainers: Set<Substring> = [
        "changes", "database", "device", "live", "sign-in",
    ]
    /// Administrative lists that a container may narrow.
    private static let narrowed: Set<Substring> = ["deliveries", "receipts"]

    /// Reads the head of a request that came to a listener; `isOperators` if administrative calls
    /// are answered there.
    init(of head: HTTPRequest, isOperators: Bool) {
        let target = head.path ?? ""
        let path = URI(target).path.split(separator: "/")
        guard path.count >= 3, path[1] == "1" else {
            self = .relay
            return
        }
        switch path[0] {
        case "admin" where isOperators: self = Self.administrative(path, head)
        case "courier":
            self = QueryParameters(target: target)["shard"].map { .courier(shard: $0) } ?? .relay
        case let word where Self.ofContainers.contains(word):
            self = Self.key(path[2...]).map { .container($0) } ?? .relay
        default: self = .relay
        }
    }

    private static func administrative(_ path: [Substring], _ head: HTTPRequest) -> CallSubject {
        guard head.headerFields[.authorization] != nil else {
            // A session of the console is known where it was begun; one begins anywhere, also where
            // the shard of the one before has no owner.
            let begins = head.method == .post && path.count == 3 && path[2] == "session"
            guard !begins, let shard = ConsoleCookie.shard(of: head) else { return .relay }
            return .session(shard: shard)
        }
        guard path[2] != "session" else { return .relay }
        let target = head.path ?? ""
        if path[2] == "containers", path.count > 3 {
            guard let key = key(path[3...]) else { return .relay }
            guard head.method == .put, path.count == 5 else { return .container(key) }
            return .creation(key, shard: QueryParameters(target: target)["shard"])
        }
        return shard(target) ?? (narrowed.contains(path[2]) ? narrowing(target) : nil) ?? .relay
    }

    /// The container that two parts of a path name, which the routes read likewise.
    private static func key(_ parts: ArraySlice<Substring>) -> ContainerKey? {
        let words = parts.prefix(2).map { QueryParameters.decodePath($0) }
        guard words.count == 2, let container = ContainerID(rawValue: words[0]),
            let environment = ContainerEnvironment(rawValue: words[1].lowercased())
        else { return nil }
        return ContainerKey(container: container, environment: environment)
    }

    private static func shard(_ target: String) -> CallSubject? {
        QueryParameters(target: target)["shard"].map { .shard($0) }
    }

    private static func narrowing(_ target: String) -> CallSubject? {
        let query = QueryParameters(target: target)
        guard let container = query["container"].flatMap({ ContainerID(rawValue: $0) }) else {
            return nil
        }
        let environment = query["environment"] ?? ContainerEnvironment.development.rawValue
        return ContainerEnvironment(rawValue: environment).map {
            .container(ContainerKey(container: container, environment: $0))
        }
    }
}
