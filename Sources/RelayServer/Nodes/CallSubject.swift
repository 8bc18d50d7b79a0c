import HTTPTypes
import HummingbirdCore
import RelayModel

/// What a call is about, which determines the store that handles it: a pure decision on its head.
///
/// It splits a path and decodes names exactly as the router and the routes do. So a call is
/// forwarded only to the store whose routes would find what it names.
enum CallSubject: Sendable, Hashable {
    /// Something in a container.
    case container(ContainerKey)
    /// A container to be created if it does not exist, in this shard if one is named.
    case creation(ContainerKey, shard: String?)
    /// The content of this shard's store.
    case shard(String)
    /// The notifications of a web courier whose URL was made in this shard.
    case courier(shard: String)
    /// A request in a session of the console that was begun in this shard.
    case session(shard: String)
    /// Something that the relay itself answers.
    case relay

    /// The first parts of paths in which a container and its environment follow `1`.
    private static let ofContainers: Set<Substring> = [
        "changes", "database", "device", "live", "sign-in",
    ]
    /// Administrative lists that can be restricted to a container.
    private static let narrowed: Set<Substring> = ["deliveries", "receipts"]

    /// Creates the subject from the head of a request; `isOperators` says whether the listener
    /// answers administrative calls.
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
            // A console session is known only in the shard where it was begun. A new one can begin
            // anywhere, even if the shard of the previous one has no owner.
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

    /// Returns the container that two parts of a path name, decoded as the routes do.
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
