import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization

/// Answers with routes that can be replaced: first those of a standby relay, then those of the
/// owner.
final class SwitchedResponder: HTTPResponder {
    typealias Routes = @Sendable (Request, RelayContext) async throws -> Response

    /// A struct, because a mutex cannot hold a function type directly.
    private struct Answering { let routes: Routes }

    private let state: Mutex<Answering>

    init(_ routes: @escaping Routes) { state = Mutex(Answering(routes: routes)) }

    /// Replaces the routes.
    func change(to routes: @escaping Routes) {
        state.withLock { $0 = Answering(routes: routes) }
    }

    @Sendable func respond(to request: Request, context: RelayContext) async throws -> Response {
        try await state.withLock { $0 }.routes(request, context)
    }
}

/// Answers the calls that other relays of the store forward.
///
/// It never forwards calls itself, so that no call goes round between two relays that take each
/// other for the owner.
struct NodeResponder: HTTPResponder {
    /// The responders by the names of their listeners.
    let responders: [String: SwitchedResponder]
    /// Whether this relay owns the store and takes calls.
    let isTaking: @Sendable () -> Bool

    /// Returns the responder for calls that arrived at a listener elsewhere.
    ///
    /// If a relay has one listener for clients and operators, that one answers administrative calls
    /// too.
    func responder(of listener: String) -> SwitchedResponder? {
        responders[listener] ?? (listener == "admin" ? responders["http"] : nil)
    }

    @Sendable func respond(to request: Request, context: RelayContext) async throws -> Response {
        var head = request.head
        let origin = CallOrigin(takenFrom: &head.headerFields)
        guard isTaking(), let responder = responder(of: origin.listener) else {
            return Response(
                status: .misdirectedRequest,
                headers: [.nodeDeclined: "this relay does not own the store"],
                body: ResponseBody())
        }
        var context = context
        context.addresses = origin.peer.map { ($0, origin.own) }
        return try await responder.respond(
            to: Request(head: head, body: request.body), context: context)
    }
}
