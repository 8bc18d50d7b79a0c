import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import RelayModel
import Synchronization

/// Answers administrative calls without a network.
///
/// Commands use it on a store file that no relay has open; it calls the same router within this
/// process.
package struct InProcessRelay: Sendable {
    private let responder: RouterResponder<RelayContext>
    private let logger: Logger
    private let token: String

    /// Creates a relay that answers the administrative calls of `dependencies`.
    ///
    /// Its token is random and exists only as long as this value.
    package init(_ dependencies: RelayDependencies) {
        var dependencies = dependencies
        token = Hexadecimal.encode(dependencies.randomBytes(32))
        dependencies.adminToken = token
        logger = dependencies.logger
        responder = RelayRouter.make(dependencies, surfaces: [.administration]).buildResponder()
    }

    /// Makes one call.
    ///
    /// - Returns: The status and the body, which is JSON unless the relay has a defect.
    package func call(
        _ method: String, _ target: String, body: [UInt8]
    ) async throws -> (status: Int, body: [UInt8]) {
        guard let method = HTTPRequest.Method(method) else {
            preconditionFailure("a command makes calls with methods that exist")
        }
        var fields = HTTPFields()
        fields[.authorization] = "Bearer \(token)"
        let request = Request(
            head: HTTPRequest(
                method: method, scheme: "http", authority: "localhost", path: target,
                headerFields: fields),
            body: RequestBody(buffer: ByteBuffer(bytes: body)))
        let response = try await responder.respond(
            to: request, context: RelayContext(logger: logger))
        let collector = BodyCollector()
        try await response.body.write(collector)
        return (response.status.code, collector.bytes)
    }

    /// Collects the body of a response.
    private final class BodyCollector: ResponseBodyWriter, Sendable {
        private let collected = Mutex<[UInt8]>([])

        var bytes: [UInt8] { collected.withLock { $0 } }

        func write(_ buffer: ByteBuffer) async throws {
            collected.withLock { $0.append(contentsOf: buffer.readableBytesView) }
        }

        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }
}
