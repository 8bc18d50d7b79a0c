import Live
import NIOCore
import RelayModel

/// What a connection proves for its device: that it was told, and heard it.
extension LiveSocket {
    /// Begins to prove what the client's device is told, if it is one.
    func beginProof(_ identity: LiveIdentity) {
        guard proof == nil, let context, !isClosing,
            let place = LivePresence.Place(identity)
        else { return }
        let loop = context.eventLoop
        let here = NIOLoopBound(self, eventLoop: loop)
        proof = LiveProof(of: place, number, to: access.presence)
        access.presence.enter(place, number) { [engine = access.engine] questions in
            Task {
                // Everything that tells of these changes has been posted then.
                let last = questions.map(\.position).max() ?? .start
                guard (try? await engine.reach(last)) != nil else { return }
                loop.execute { here.value.prove(questions) }
            }
        }
    }

    private func prove(_ questions: [LivePresence.Question]) {
        guard !isClosing, context != nil else { return }
        ping(proof?.ask(questions, isTellingInbox: session.feed != nil))
    }

    /// Notes that the client is being told of changes.
    func note(told positions: [LogPosition]) {
        guard proof != nil else { return }
        ping(proof?.note(told: positions))
    }

    /// Asks for the answer that proves what was sent before it.
    private func ping(_ bytes: [UInt8]?) {
        guard let bytes, !isClosing else { return }
        queue(LoopSockets.control(0x89, bytes))
        flush()
    }

    func endProof() {
        proof?.end()
        proof = nil
    }
}
