import HTTPTypes
package import Hummingbird
package import Logging
import NIOCore
import RelayModel

/// What Hummingbird carries along with a request; also made without a connection.
package struct RelayContext: RequestContext {
    /// Hummingbird's part.
    package var coreContext: CoreRequestContextStorage
    /// Whether there is a client at the other end of a connection, who may go.
    var isConnected: Bool { channel != nil }
    /// The connection.
    let channel: (any Channel)?
    /// The other end's address, and ours.
    let addresses: (peer: ClientAddress, own: ClientAddress?)?

    /// Creates the context of a request that came over a connection.
    package init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel.isActive ? source.channel : nil
        let own = ClientAddress(source.channel.localAddress)
        addresses = ClientAddress(source.channel.remoteAddress).map { ($0, own) }
    }

    /// Creates the context of a request that was made in this process.
    package init(logger: Logger) {
        coreContext = CoreRequestContextStorage(source: InProcess(logger: logger))
        channel = nil
        addresses = nil
    }

    private struct InProcess: RequestContextSource {
        let logger: Logger
    }
}

/// A path that the router found.
struct RelayPlace: Sendable {
    /// The template.
    let path: String
    /// Its methods, as `Allow` has them.
    let allowed: String
    /// What pages of other origins may do with its answers.
    let pages: RelayRoute.Pages
    /// The names of its variable parts.
    private let names: [String]

    init(path: String, allowed: String, pages: RelayRoute.Pages) {
        self.path = path
        self.allowed = allowed
        self.pages = pages
        names = path.split(separator: "/").filter { $0.hasPrefix("{") }.map {
            String($0.dropFirst().dropLast())
        }
    }

    /// The variable parts, decoded.
    ///
    /// Only those of this path: the router leaves behind what it met on ways that led nowhere.
    func parameters(of context: RelayContext) -> [String: String] {
        var parameters: [String: String] = [:]
        for name in names {
            parameters[name] = context.parameters.get(name).map { QueryParameters.decodePath($0) }
        }
        return parameters
    }
}

/// Builds Hummingbird's router from the table of routes.
package enum RelayRouter {
    private static let methods: [HTTPRequest.Method] = [
        .get, .head, .post, .put, .patch, .delete, .options,
    ]

    /// A router for those calls of `dependencies` that belong to `surfaces`.
    ///
    /// Every path answers every method: with the route, with the CORS preflight, or with 405 and
    /// the methods that it has.
    package static func make(
        _ dependencies: RelayDependencies, surfaces: Set<RelayRoute.Surface>
    ) -> Router<RelayContext> {
        let router = Router(context: RelayContext.self)
        let door = RelayDoor(dependencies)
        router.add(middleware: NotFoundMiddleware(door: door))
        let served = routes(dependencies).filter { surfaces.contains($0.surface) }
        for (path, routes) in Dictionary(grouping: served, by: \.path) {
            let place = RelayPlace(
                path: path, allowed: allowedMethods(of: routes),
                pages: routes.first?.surface.pages ?? .none)
            for method in methods {
                let route = route(for: method, among: routes)
                router.on(RouterPath(path), method: method) { request, context in
                    await door.answer(
                        request, context: context, route: route, place: place)
                }
            }
        }
        return router
    }

    /// Every call, in the order of the documentation.
    package static func routes(_ dependencies: RelayDependencies) -> [RelayRoute] {
        let clients = ClientAdmission(dependencies)
        return SubscriptionRoutes(dependencies, clients).routes
            + TokenRoutes(dependencies, clients).routes
            + RecordRoutes(dependencies, clients).routes
            + RecordFeedRoutes(dependencies, clients).routes
            + ZoneRoutes(dependencies, clients).routes
            + CourierRoutes(dependencies).routes
            + NotificationRoutes(dependencies, clients).routes
            + UserRoutes(dependencies, clients).routes
            + SignOutRoutes(dependencies, clients).routes
            + ChangeRoutes(dependencies).routes + OperationRoutes(dependencies).routes
            + OpenAPIRoutes(publicURL: dependencies.publicURL).routes
            + AdministrationRoutes(dependencies).routes
    }

    /// HEAD is answered as GET without the body.
    private static func route(
        for method: HTTPRequest.Method, among routes: [RelayRoute]
    ) -> RelayRoute? {
        let name = method == .head ? "GET" : method.rawValue
        return routes.first { $0.method == name }
    }

    private static func allowedMethods(of routes: [RelayRoute]) -> String {
        var names = Set(routes.map(\.method))
        names.insert("OPTIONS")
        if names.contains("GET") { names.insert("HEAD") }
        return names.sorted().joined(separator: ", ")
    }

    /// Answers what no path matches.
    private struct NotFoundMiddleware: RouterMiddleware {
        let door: RelayDoor

        @concurrent
        func handle(
            _ request: Request, context: RelayContext,
            next: @concurrent (Request, RelayContext) async throws -> Response
        ) async throws -> Response {
            guard context.endpointPath == nil else { return try await next(request, context) }
            return await door.answer(
                request, context: context, route: nil, place: nil)
        }
    }
}
