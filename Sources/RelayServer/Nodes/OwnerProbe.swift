import HTTPTypes
import NIOCore
import NIOHTTPTypes
import NIOPosix

/// Asks the owner of the store whether it can serve, over the path of forwarded calls.
final class OwnerProbe: UpstreamUser {
    /// How long an answer may take.
    private static let patience = TimeAmount.seconds(2)

    private let promise: EventLoopPromise<Int>
    private var status: Int?

    private init(_ promise: EventLoopPromise<Int>) { self.promise = promise }

    /// Returns the status of the owner's `/readyz`.
    ///
    /// - Throws: An error if the owner cannot be reached or does not answer in time.
    static func status(of route: OwnerRoute, by forwarding: CallForwarding) async throws -> Int {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let promise = loop.makePromise(of: Int.self)
        loop.execute { ask(route, forwarding, promise, on: loop) }
        return try await promise.futureResult.get()
    }

    private static func ask(
        _ route: OwnerRoute, _ forwarding: CallForwarding, _ promise: EventLoopPromise<Int>,
        on loop: any EventLoop
    ) {
        let timer = loop.scheduleTask(in: patience) {
            promise.fail(ChannelError.connectTimeout(patience))
        }
        promise.futureResult.whenComplete { _ in timer.cancel() }
        forwarding.pool(of: loop).take(route).assumeIsolated().whenComplete { outcome in
            switch outcome {
            case .failure(let error): promise.fail(error)
            case .success(let bound): OwnerProbe(promise).ask(bound.value, forwarding, loop)
            }
        }
    }

    private func ask(_ upstream: Upstream, _ forwarding: CallForwarding, _ loop: any EventLoop) {
        upstream.use(by: self)
        var head = HTTPRequest(method: .get, scheme: nil, authority: "relay", path: "/readyz")
        CallOrigin(listener: "http", peer: nil, own: nil).write(to: &head.headerFields)
        upstream.write(.head(head))
        upstream.write(.end(nil))
        upstream.flush()
        promise.futureResult.assumeIsolated().whenComplete { outcome in
            if case .success(let status) = outcome, status != 421 {
                forwarding.pool(of: loop).giveBack(upstream)
            } else {
                upstream.close()
            }
        }
    }

    func take(_ part: HTTPResponsePart) {
        switch part {
        case .head(let head):
            status = head.status.code
            // The owner is ending, and says so on a connection that was kept.
            if head.status.kind == .informational { promise.succeed(421) }
        case .body: break
        case .end: if let status { promise.succeed(status) }
        }
    }

    func takeEnd() {}

    func upstreamEnded() { promise.fail(ChannelError.ioOnClosedChannel) }

    func upstreamWritabilityChanged() {}
}
