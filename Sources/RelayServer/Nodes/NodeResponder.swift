import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization

/// Answers with the routes that hold at a moment: those of a relay that stands by, and then those
/// of one that owns the store.
final class SwitchedResponder: HTTPResponder {
    typealias Routes = @Sendable (Request, RelayContext) async throws -> Response

    /// A lock holds no bare function.
    private struct Answering { let routes: Routes }

    private let state: Mutex<Answering>

    init(_ routes: @escaping Routes) { state = Mutex(Answering(routes: routes)) }

    /// Answers with other routes from now on.
    func change(to routes: @escaping Routes) {
        state.withLock { $0 = Answering(routes: routes) }
    }

    @Sendable func respond(to request: Request, context: RelayContext) async throws -> Response {
        try await state.withLock { $0 }.routes(request, context)
    }
}

/// Answers the calls that other relays of the store hand on.
///
/// Nothing is handed on from here, so that no call goes round between two relays each of which
/// takes the other for the owner.
struct NodeResponder: HTTPResponder {
    /// What answers, by the names of the listeners.
    let responders: [String: SwitchedResponder]
    /// Whether this relay owns the store, and takes calls.
    let isTaking: @Sendable () -> Bool

    /// What answers calls that came to a listener elsewhere; a relay with one listener for clients
    /// and operators answers all there.
    func responder(of listener: String) -> SwitchedResponder? {
        responders[listener] ?? (listener == "admin" ? responders["http"] : nil)
    }

    @Sendable func respond(to request: Request, context: RelayContext) async throws -> Response {
        var head = request.head
        let origin = CallOrigin(takenFrom: &head.headerFields)
        guard isTaking(), let responder = responder(of: origin.listener) else {
            return Response(
                status: .misdirectedRequest,
                headers: [.nodeDeclined: "it does not own the store"],
                body: ResponseBody())
        }
        var context = context
        context.addresses = origin.peer.map { ($0, origin.own) }
        return try await responder.respond(
            to: Request(head: head, body: request.body), context: context)
    }
}
