extension GatewayPool {
    /// Gives up a connection that does not answer.
    func drop(_ connection: CurlConnection, _ cause: RetirementCause) {
        connection.life.retire(cause)
        for transfer in transfers
        where transfer.connection === connection && transfer.waiting != nil {
            connection.abandon(transfer)
            guard let waiting = transfer.unload() else { continue }
            connection.free.append(transfer)
            noteEnd(of: waiting.request)
            let isLost = transfer.isPlaced && !transfer.refusal.isProof
            let fate: TransferVerdict.Fate =
                isLost ? (transfer.isAccepted ? .accepted : .unknown) : .moveOn
            if fate == .accepted { connection.life.noteAccepted() }
            connection.life.finish(.broke(cause), at: context.now)
            lose(
                waiting, transfer, fate, PushCause("the connection was given up: \(cause.rawValue)")
            )
        }
        noteFailure(of: connection, PushCause("the connection was given up: \(cause.rawValue)"))
        close(connection)
    }

    func close(_ connection: CurlConnection) {
        if case .draining(let cause) = connection.life.state {
            noteFailure(of: connection, PushCause("the connection ended: \(cause.rawValue)"))
        }
        connection.close()
        connections.removeAll { $0 === connection }
        for transfer in transfers where transfer.connection === connection { transfer.unbind() }
        stock.append(contentsOf: connection.free)
        connection.free.removeAll()
        learn(from: connection.life)
        guard case .draining(let cause) = connection.life.state else { return }
        context.observe(
            .retired(
                name, connection: connection.number, cause: cause,
                age: context.now.duration(since: connection.life.bornAt),
                answered: connection.life.answered))
    }

    /// Learns from a connection that the gateway ended, which may happen after as many requests
    /// again.
    private func learn(from life: ConnectionLife) {
        guard let end = life.gatewaysEnd else { return }
        let before = endurance.allowance(at: context.now)
        endurance.note(end, at: context.now)
        guard let allowance = endurance.allowance(at: context.now), allowance != before else {
            return
        }
        context.observe(.allowanceChanged(name, requests: allowance))
        for connection in connections { connection.life.allow(allowance) }
    }

    /// Retires idle connections that were opened for a burst.
    ///
    /// The oldest one is retired much later.
    func retireIdle() {
        var patience = context.settings.idleTimeout * 10
        for connection in connections where connection.life.isUsable {
            if connection.life.idleTime(at: context.now) >= patience {
                connection.life.retire(.idle)
            }
            patience = context.settings.idleTimeout
        }
    }
}
