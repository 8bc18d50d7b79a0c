import HTTPTypes
package import Hummingbird

/// Builds Hummingbird's router from the table of routes.
package enum RelayRouter {
    private static let methods: [HTTPRequest.Method] = [
        .get, .head, .post, .put, .patch, .delete, .options,
    ]

    /// Returns a router for the calls of `dependencies` that belong to `surfaces`.
    ///
    /// Every path answers every method: with the route, with the CORS preflight, or with 405 and
    /// the allowed methods.
    package static func make(
        _ dependencies: RelayDependencies, surfaces: Set<RelayRoute.Surface>
    ) -> Router<RelayContext> {
        make(
            routes(dependencies).filter { surfaces.contains($0.surface) },
            RequestHandler(
                turnstile: dependencies.turnstile, proxies: dependencies.proxies,
                limits: dependencies.limits, meter: RequestMeter(dependencies.metrics),
                accessLog: AccessLog(dependencies.accessLog, logger: dependencies.logger),
                now: dependencies.now, identifiers: RandomIdentifiers(dependencies.randomBytes),
                servesPages: surfaces.contains(.client)))
    }

    /// Returns a router for the given calls.
    static func make(_ served: [RelayRoute], _ handler: RequestHandler) -> Router<RelayContext> {
        let router = Router(context: RelayContext.self)
        let groups = Dictionary(grouping: served, by: \.path).map { path, routes in
            (
                place: RelayPlace(
                    path: path, allowed: allowedMethods(of: routes),
                    pages: routes.first?.surface.pages ?? .none,
                    refuse: routes.compactMap { $0.refuse }.first),
                routes: routes
            )
        }
        router.add(middleware: NotFoundMiddleware(handler: handler, places: groups.map(\.place)))
        for (place, routes) in groups {
            for method in methods {
                let route = route(for: method, among: routes)
                router.on(RouterPath(place.path), method: method) { request, context in
                    await handler.answer(
                        request, context: context, route: route, place: place)
                }
            }
        }
        return router
    }

    /// Returns all calls, in the order of the documentation.
    package static func routes(_ dependencies: RelayDependencies) -> [RelayRoute] {
        RouteTable(dependencies).routes
    }

    /// Returns the route for a method; HEAD is answered as GET without the body.
    private static func route(
        for method: HTTPRequest.Method, among routes: [RelayRoute]
    ) -> RelayRoute? {
        let name = method == .head ? "GET" : method.rawValue
        return routes.first { $0.method == name && (method != .head || $0.takesHead) }
    }

    private static func allowedMethods(of routes: [RelayRoute]) -> String {
        var names = Set(routes.map(\.method))
        names.insert("OPTIONS")
        if route(for: .head, among: routes) != nil { names.insert("HEAD") }
        return names.sorted().joined(separator: ", ")
    }

    /// Answers requests for which there is no path.
    private struct NotFoundMiddleware: RouterMiddleware {
        let handler: RequestHandler
        /// The paths, those with the fewest variables first, in the order in which the router
        /// prefers them.
        private let places: [RelayPlace]

        init(handler: RequestHandler, places: [RelayPlace]) {
            self.handler = handler
            self.places = places.sorted { $0.variables < $1.variables }
        }

        @concurrent
        func handle(
            _ request: Request, context: RelayContext,
            next: @concurrent (Request, RelayContext) async throws -> Response
        ) async throws -> Response {
            guard context.endpointPath == nil else { return try await next(request, context) }
            // The router finds a path only together with a method that it knows; an uncommon method
            // needs this search.
            let isRare = !RelayRouter.methods.contains(request.method)
            let place = isRare ? RelayPlace.first(of: places, at: request.uri.path) : nil
            return await handler.answer(
                request, context: context, route: nil, place: place)
        }
    }
}
