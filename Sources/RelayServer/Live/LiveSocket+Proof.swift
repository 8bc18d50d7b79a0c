import Live
import NIOCore
import RelayModel

/// The proof, for a device, that its connection was sent changes and that the client read them.
extension LiveSocket {
    /// Begins the proof, if the client belongs to a device.
    func beginProof(_ identity: LiveIdentity) {
        guard proof == nil, let context, !isClosing,
            let place = LivePresence.Place(identity)
        else { return }
        let loop = context.eventLoop
        let here = NIOLoopBound(self, eventLoop: loop)
        proof = LiveProof(of: place, number, to: access.presence)
        access.presence.enter(place, number) { [engine = access.engine] questions in
            Task {
                // By then everything about these changes has been posted.
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

    /// Notes that the client is being sent these changes.
    func note(told positions: [LogPosition]) {
        guard proof != nil else { return }
        ping(proof?.note(told: positions))
    }

    /// Sends a ping whose answer proves everything that was sent before it.
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
