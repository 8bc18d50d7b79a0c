import RelayModel

extension GatewayPool: TransferOwner {
    func connectionEstablished(_ connection: CurlConnection) {
        context.observe(.connected(name, connection: connection.number))
    }

    func wants(_ request: PushRequest) -> Bool {
        guard let registration = request.registration else { return true }
        return !context.hasEnded(registration)
    }

    func transferEnded(_ transfer: CurlTransfer, code: UInt32, on connection: CurlConnection) {
        guard let waiting = transfer.unload() else { return }
        // A request whose answer was cut was answered all the same.
        let result = transfer.isCut ? 0 : code
        context.countMove()
        connection.free.append(transfer)
        noteEnd(
            of: waiting.request,
            after: result == 0 ? context.now.duration(since: transfer.startedAt) : .zero)
        guard !transfer.isWithdrawn else {
            connection.life.finish(.withdrawn, at: context.now)
            context.complete(waiting.request, .notSent(cause: .registrationEnded))
            return
        }
        let verdict = TransferVerdict(
            .init(
                code: result, isPlaced: transfer.isPlaced,
                isConnectionEstablished: connection.isEstablished, refusal: transfer.refusal,
                isAccepted: transfer.isAccepted))
        switch verdict.fate {
        case .answered: answered(waiting, transfer, on: connection)
        case .accepted, .moveOn, .notSent, .unknown:
            let detail = transfer.isPlaced ? "" : transfer.problemText
            let cause =
                connection.objection
                ?? TransferCause.text(
                    code: result, isEstablished: connection.isEstablished,
                    isRefused: transfer.refusal.isProof, detail: detail)
            if verdict.fate == .accepted { connection.life.noteAccepted() }
            connection.life.finish(verdict.ending, at: context.now)
            if verdict.isCrowded, connection.life.answered > 0 { narrow() }
            lose(waiting, transfer, verdict.fate, cause)
            noteFailure(of: connection, cause)
        }
    }

    private func answered(
        _ waiting: WaitingPush, _ transfer: CurlTransfer, on connection: CurlConnection
    ) {
        if !connection.isKnownAsHTTP2 {
            guard transfer.isHTTP2 else {
                let cause = PushCause("the gateway answered over HTTP/1.1; HTTP/2 is required")
                connection.life.finish(.broke(.connectFailed), at: context.now)
                lose(waiting, transfer, .unknown, cause)
                noteFailure(of: connection, cause)
                return
            }
            connection.isKnownAsHTTP2 = true
        }
        let latency = context.now.duration(since: transfer.startedAt)
        let status = transfer.status
        guard status != 200 else {
            connection.life.finish(.accepted, at: context.now)
            width.accept(at: context.now)
            self.latency.note(latency)
            tolerance.answer(after: latency)
            connecting.succeed(at: context.now)
            patience.succeed(waiting.request.container, at: context.now)
            authority.acquit()
            context.complete(waiting.request, .accepted, latency: latency)
            return
        }
        let refusal = refusal(status, waiting.request, transfer, on: connection)
        context.complete(waiting.request, .refused(refusal), latency: latency)
    }

    private func refusal(
        _ status: Int, _ request: PushRequest, _ transfer: CurlTransfer,
        on connection: CurlConnection
    ) -> GatewayRefusal {
        let body = AnswerBody(reading: transfer.answerBody)
        let row = ReasonTable.apns.row(status: status, reason: body.reason)
        let judgement = authority.judge(
            row, generation: transfer.headers?.key.tokenGeneration ?? 0,
            connection: connection.number, context)
        let retryAfter = transfer.retryAfter
        connection.life.finish(.refused(row.connection), at: context.now)
        let isCredentials = judgement.reaction == .pauseContainer
        let cause =
            row.reason.isEmpty
            ? PushCause("the gateway answered \(status)", detail: body.reason)
            : PushCause("the gateway answered \(status) \(row.reason)")
        if isCredentials {
            for other in connections { other.life.retire(.refused) }
            backAway(cause)
            failWaiting(connecting.cause(pausing: connecting.remaining(at: context.now)))
        } else if case .retry(_, .gateway) = row.reaction {
            leaveAlone(request.container, cause)
        }
        noteFailure(of: connection, cause)
        return GatewayRefusal(
            status: status, reason: body.reason, timestamp: body.timestamp,
            retryAfter: retryAfter,
            reaction: judgement.reaction.informed(
                timestamp: body.timestamp, retryAfter: retryAfter),
            trialAfter: judgement.trialAfter,
            urgency: isCredentials ? .alarm : row.urgency,
            explanation: [row.meaning, judgement.remark].compactMap(\.self)
                .joined(separator: "; "))
    }

    func lose(
        _ waiting: WaitingPush, _ transfer: CurlTransfer, _ fate: TransferVerdict.Fate,
        _ cause: PushCause
    ) {
        let latency = context.now.duration(since: transfer.startedAt)
        switch fate {
        case .moveOn where waiting.moves < Self.maximumMoves && !isClosing:
            queue.prepend(
                WaitingPush(request: waiting.request, moves: waiting.moves + 1))
        case .moveOn, .notSent, .answered:
            context.complete(waiting.request, .notSent(cause: cause), latency: latency)
        case .accepted: context.complete(waiting.request, .accepted, latency: latency)
        case .unknown:
            context.complete(waiting.request, .unknown(cause: cause), latency: latency)
        }
    }

    /// The maximum number of times that an unprocessed request is moved to another connection.
    private static let maximumMoves = 8

    /// Makes the pool wait before the next connection if the gateway ended this one without
    /// accepting a push: short-lived connections look like an attack.
    func noteFailure(of connection: CurlConnection, _ cause: PushCause) {
        guard connection.life.blame() else { return }
        backAway(cause)
    }

    private func backAway(_ cause: PushCause) {
        guard connecting.fail(cause: cause, at: context.now, using: &context.generator) else {
            return
        }
        let pause = connecting.remaining(at: context.now)
        context.observe(.backingOff(name, cause: cause.description, pause: pause))
    }

    /// Makes the requests of `container` wait a moment longer.
    ///
    /// The other containers of the credential go on.
    private func leaveAlone(_ container: ContainerKey, _ cause: PushCause) {
        let pause = patience.fail(
            container, cause: cause, at: context.now, using: &context.generator)
        for waiting in queue.remove(container) { enqueue(waiting) }
        guard let pause else { return }
        context.observe(.backingOff(name, cause: cause.description, pause: pause))
    }

    private func narrow() {
        let before = width.current
        width.refuse(at: context.now)
        if width.current != before { context.observe(.widthChanged(name, width: width.current)) }
    }

    func failWaiting(_ cause: PushCause) {
        for waiting in queue.removeAll() + patience.removeAll() {
            context.complete(waiting.request, .notSent(cause: cause))
        }
    }
}
