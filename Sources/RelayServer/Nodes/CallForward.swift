import DequeModule
import HTTPTypes
import NIOCore
import NIOHTTPTypes
import RelayModel
import StoragePostgreSQL

/// One call that is forwarded to the relay that owns its store; it belongs to its connection's
/// event loop.
final class CallForward: UpstreamUser {
    /// The pause before a retry, which doubles up to the maximum, because all waiting calls retry.
    private static let leastPause = TimeAmount.milliseconds(25)
    private static let mostPause = TimeAmount.milliseconds(400)
    /// How long to wait for the answer after a client has closed its sending side.
    private static let courtesy = TimeAmount.seconds(2)
    /// How long an answer may continue after its relay has lost the ownership of the store.
    private static let afterglow = TimeAmount.seconds(1)

    private let forwarding: CallForwarding
    private let loop: any EventLoop
    private let original: HTTPRequest
    private let isOperators: Bool
    /// The head that is sent to the owner, or why it cannot be sent.
    private let head: Result<ForwardedHead, ForwardedHead.Refusal>
    private weak var client: CallForwarder?
    private var call: ForwardedCall
    /// The call's share of the places for its store.
    private var place: CallPlace
    private var upstream: Upstream?
    private var isConnecting = false
    /// Whether the owner must accept the body before it is sent.
    private var awaitsWord = false
    /// The parts of the body that are not sent yet, and those that were sent and are kept for a
    /// retry.
    private var unsent: Deque<HTTPRequestPart> = []
    private var sent: [HTTPRequestPart] = []
    /// Whether the whole request has arrived.
    private(set) var isRead = false
    private var isOver = false
    /// Whether the owner's answer is the last on the client's connection.
    private var isLast = false
    private(set) var isStream = false
    /// Whether the other relay says that it does not own the store.
    private var isDeclined = false
    /// Whether the owner closes its connection after this answer.
    private var upstreamEnds = false
    private var pause = CallForward.leastPause
    private var upgrade: HTTPResponse?
    private var listening: UInt64?
    private var timer: Scheduled<Void>?

    init(
        _ head: HTTPRequest, from origin: CallOrigin, told isOperators: Bool,
        _ forwarding: CallForwarding, _ client: CallForwarder, _ loop: any EventLoop
    ) {
        self.forwarding = forwarding
        self.loop = loop
        self.client = client
        (original, self.isOperators) = (head, isOperators)
        self.head = Result { () throws(ForwardedHead.Refusal) in
            try ForwardedHead(of: head, from: origin)
        }
        call = ForwardedCall(
            at: loop.pace, patience: forwarding.patience,
            isSafe: ForwardedCall.safeMethods.contains(head.method))
        place = CallPlace(forwarding.places)
        forwarding.meter.begin()
        let here = NIOLoopBound(Weak(self), eventLoop: loop)
        listening = forwarding.current.listen { [loop] in
            loop.execute { here.value.call?.answererChanged() }
        }
    }

    private struct Weak {
        weak var call: CallForward?
        init(_ call: CallForward) { self.call = call }
    }

    /// Whether more of the request should be read.
    var wantsMore: Bool {
        !isRead && unsent.isEmpty && !awaitsWord && (upstream?.isWritable ?? false)
    }

    // MARK: Finding the owner

    /// Connects to the owner, or waits for one.
    func seek() {
        guard !isOver, upstream == nil, !isConnecting else { return }
        timer?.cancel()
        guard place.take() else { return refuse(503, Self.crowded) }
        switch forwarding.current.answerer {
        case .here: return takeBack()
        case .owner(let route):
            switch head {
            case .success(let head): return connect(route, head)
            case .failure(let refusal): return refuse(refusal.status, refusal.reason)
            }
        case .ended: return refuse(503, "the relay is shutting down")
        case .nobody: break
        }
        let rest = call.deadline - loop.pace
        guard rest > .zero else { return refuse(503, forwarding.nobody(told: isOperators)) }
        guard place.wait() else { return refuse(503, Self.crowded) }
        later(TimeAmount(rest)) { $0.seek() }
    }

    private static let crowded = "too many calls wait for the relay that owns their store"

    private func answererChanged() {
        guard !isOver else { return }
        guard let upstream else { return seek() }
        if case .here = forwarding.current.answerer {
            return later(Self.afterglow) { $0.fail(.ownerChanged) }
        }
        guard let owner = forwarding.current.owner, owner != upstream.owner else { return }
        later(Self.afterglow) { $0.fail(.ownerChanged) }
    }

    private func later(_ time: TimeAmount, _ body: @escaping (CallForward) -> Void) {
        timer?.cancel()
        timer = loop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            if let self, !isOver { body(self) }
        }
    }

    private func connect(_ route: OwnerRoute, _ head: ForwardedHead) {
        isConnecting = true
        let taken = forwarding.pool(of: loop).take(route)
        taken.assumeIsolated().whenComplete { [self] outcome in
            isConnecting = false
            switch outcome {
            case .failure:
                if !isOver { fail(.unreachable) }
            case .success(let bound):
                guard !isOver else { return forwarding.pool(of: loop).giveBack(bound.value) }
                send(head, by: bound.value)
            }
        }
    }

    // MARK: The request

    private func send(_ head: ForwardedHead, by upstream: Upstream) {
        self.upstream = upstream
        place.goOn()
        upstream.use(by: self)
        call.begin()
        awaitsWord = head.asksFirst
        upstream.write(.head(head.request))
        upstream.flush()
        if !(client?.isWritable ?? true) { upstream.hold(true) }
        sendBody()
    }

    /// Takes a part of the request from the client.
    func take(_ part: HTTPRequestPart) {
        var part = part
        if case .end = part {
            isRead = true
            // Trailer fields have no use, and a client must not pass its own off as fields of this
            // relay.
            part = .end(nil)
        }
        unsent.append(part)
        sendBody()
    }

    private func sendBody() {
        guard let upstream, !awaitsWord else { return }
        var hasSent = false
        while upstream.isWritable, let part = unsent.popFirst() {
            if case .body(let bytes) = part { call.send(bytes.readableBytes) }
            if call.isWhole { sent.append(part) } else { sent = [] }
            upstream.write(part)
            hasSent = true
        }
        if hasSent { upstream.flush() }
        if wantsMore { client?.readOn() }
    }

    func upstreamWritabilityChanged() { sendBody() }

    // MARK: The answer

    /// Stops or resumes reading the answer, as the client's connection requires.
    func hold(_ isHeld: Bool) { upstream?.hold(isHeld) }

    func take(_ part: HTTPResponsePart) {
        switch part {
        case .head(let head): take(head)
        case .body: if call.isAnswered { client?.write(part) }
        case .end(let trailers): end(trailers)
        }
    }

    private func take(_ head: HTTPResponse) {
        if head.status == .switchingProtocols {
            guard let asked = try? self.head.get(), asked.isUpgrade else {
                dropUpstream()
                return fail(.lost)
            }
            upgrade = head
        } else if head.status.kind == .informational {
            // The request reached an owner that had ended its connection, so it was not taken.
            guard head.headerFields[.nodeDeclined] == nil else { return fail(.declined) }
            goOn()
        } else if head.headerFields[.nodeDeclined] != nil {
            isDeclined = true
        } else {
            answer(head)
        }
    }

    /// Sends the body, which the owner has accepted.
    private func goOn() {
        guard awaitsWord else { return }
        awaitsWord = false
        if let asked = try? head.get(), asked.isExpected {
            client?.write(.head(HTTPResponse(status: .continue)))
            client?.flush()
        }
        sendBody()
    }

    private func answer(_ head: HTTPResponse) {
        var head = head
        // If a request is answered before all of it has arrived, its connection must end.
        isLast = !isRead || !unsent.isEmpty || original.headerFields[.connection] == "close"
        let closes = head.headerFields[.connection]?.lowercased() == "close"
        isStream =
            head.headerFields[.contentType]?.hasPrefix("text/event-stream") ?? false
        head.headerFields[.connection] = isLast ? "close" : nil
        head.headerFields[.keepAlive] = nil
        if closes { upstreamEnds = true }
        call.answer()
        place.giveBack()
        client?.write(.head(head))
    }

    private func end(_ trailers: HTTPFields?) {
        if let upgrade { return join(upgrade) }
        guard !isDeclined else { return fail(.declined) }
        guard call.isAnswered else { return }
        client?.write(.end(trailers))
        client?.flush()
        letUpstreamGo()
        let client = client
        over(.answered)
        client?.finish(isLast: isLast)
    }

    func takeEnd() { client?.flush() }

    func upstreamEnded() {
        upstream = nil
        if !isOver { fail(isDeclined ? .declined : .lost) }
    }

    /// Returns the connection to the pool, if nothing of this call is left on it.
    private func letUpstreamGo() {
        guard let upstream else { return }
        self.upstream = nil
        // After an upgrade request or an answer to HEAD it is uncertain what comes next.
        let isPlain = (try? head.get())?.isUpgrade == false && original.method != .head
        if isPlain, isRead, unsent.isEmpty, !awaitsWord, !upstreamEnds {
            forwarding.pool(of: loop).giveBack(upstream)
        } else {
            upstream.close()
        }
    }

    /// Turns both connections into the ends of a tunnel.
    private func join(_ answer: HTTPResponse) {
        guard let upstream, let client else { return }
        let (forwarding, loop, owner) = (forwarding, loop, upstream.owner)
        let owners = TunnelEnd()
        guard upstream.become(owners) else { return fail(.lost) }
        self.upstream = nil
        isOver = true
        release()
        let watch = TunnelWatch(forwarding.current, of: owner, owners, loop)
        let clients = TunnelEnd {
            watch.end()
            forwarding.meter.end(.answered)
        }
        client.upgrade(answer, to: clients) { isJoined in
            if isJoined { return TunnelEnd.join(clients, owners) }
            owners.close()
            watch.end()
            forwarding.meter.end(.left)
        }
    }

    // MARK: The end

    /// Whether the call waits for a notification, which would be lost if the client has gone.
    private var isPoll: Bool { original.path?.hasPrefix("/courier/") ?? false }

    /// Notes that the client closed its sending side: it may wait for its answer, or it has gone.
    func clientFellSilent() {
        guard !isOver else { return }
        guard isRead, !isStream, !isPoll, (try? head.get().isUpgrade) != true else {
            client?.cut()
            return abandon()
        }
        later(Self.courtesy) {
            $0.client?.cut()
            $0.abandon()
        }
    }

    /// Ends the call because the client has gone.
    func abandon() {
        guard !isOver else { return }
        dropUpstream()
        over(.left)
    }

    private func fail(_ failure: ForwardedCall.Failure) {
        switch call.verdict(on: failure, at: loop.pace) {
        case .retry:
            dropUpstream()
            call.startOver()
            unsent = Deque(sent) + unsent
            sent = []
            awaitsWord = false
            isDeclined = false
            guard place.wait() else { return refuse(503, Self.crowded) }
            later(pause) { $0.seek() }
            pause = min(pause * 2, Self.mostPause)
        case .refuse(let status, let reason): refuse(status, reason)
        case .cut:
            dropUpstream()
            let client = client
            over(.cut)
            client?.cut()
        }
    }

    private func refuse(_ status: Int, _ reason: String) {
        dropUpstream()
        let answer = UnroutedAnswer(
            status: status, code: Self.code(of: status), reason: reason,
            uuid: forwarding.identifiers.uuid())
        var fields = HTTPFields()
        for (name, value) in answer.headers {
            if let name = HTTPField.Name(name) { fields[name] = value }
        }
        let client = client
        over(.refused)
        client?.write(
            .head(HTTPResponse(status: HTTPResponse.Status(code: status), headerFields: fields)))
        if original.method != .head {
            client?.write(.body(ByteBuffer(bytes: answer.body)))
        }
        client?.write(.end(nil))
        client?.flush()
        client?.finish(isLast: true)
    }

    /// The error code for the client; only a call that certainly had no effect is to be sent again.
    private static func code(of status: Int) -> ServerErrorCode {
        switch status {
        case 503: .tryAgainLater
        case 502: .internalError
        default: .badRequest
        }
    }

    /// Passes the call to the routes of this relay, which owns the store now.
    private func takeBack() {
        let parts = Deque([.head(original)]) + sent + unsent
        isOver = true
        release()
        forwarding.meter.end(.own)
        client?.takeBack(parts)
    }

    private func dropUpstream() {
        upstream?.close()
        upstream = nil
    }

    private func over(_ outcome: ForwardingMeter.Outcome) {
        isOver = true
        release()
        forwarding.meter.end(outcome)
    }

    private func release() {
        timer?.cancel()
        timer = nil
        if let listening { forwarding.current.forget(listening) }
        listening = nil
        place.giveBack()
        unsent = []
        sent = []
    }
}
