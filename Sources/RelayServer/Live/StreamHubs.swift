import Live
import Synchronization

/// All clients that are answered over HTTP, as one hub for the engine; each post is passed on only
/// to the clients that it concerns.
///
/// Concurrency: a lock around the tables; no other code is called while it is held. Posts of one
/// task keep their order.
final class StreamHubs: LiveHub {
    private struct State {
        var streams: [UInt64: StreamHub] = [:]
        /// The identities of the polls.
        var polls: [UInt64: LiveIdentity] = [:]
        var members: [UInt32: Set<UInt64>] = [:]
        /// The groups of each client.
        var groups: [UInt64: Set<UInt32>] = [:]

        mutating func join(_ number: UInt64, _ group: UInt32) {
            guard streams[number] != nil else { return }
            members[group, default: []].insert(number)
            groups[number, default: []].insert(group)
        }

        mutating func leave(_ number: UInt64, _ group: UInt32) {
            members[group]?.remove(number)
            if members[group]?.isEmpty == true { members[group] = nil }
            groups[number]?.remove(group)
        }
    }

    private let state = Mutex(State())

    /// Adds a client; to be called before anything is posted to it.
    func add(_ hub: StreamHub, of number: UInt64) {
        state.withLock { $0.streams[number] = hub }
    }

    /// Notes that a client is a poll, so that a revocation can end its waiting.
    func note(poll number: UInt64, of identity: LiveIdentity) {
        state.withLock { $0.polls[number] = identity }
    }

    /// Ends the polls that depend on what was revoked.
    func endPolls(_ revocation: Revocation) {
        let ending = state.withLock { state in
            state.polls.filter { revocation.concerns($0.value) }.keys
                .compactMap { state.streams[$0] }
        }
        for hub in ending { hub.end(saying: revocation.end) }
    }

    /// Removes a client; one that is not here is ignored.
    func remove(_ number: UInt64) {
        state.withLock { state in
            guard state.streams.removeValue(forKey: number) != nil else { return }
            state.polls[number] = nil
            for group in state.groups[number] ?? [] { state.leave(number, group) }
            state.groups[number] = nil
        }
    }

    func post(_ commands: [LiveCommand]) {
        let letters = state.withLock { state in
            var letters: [(hub: StreamHub, commands: [LiveCommand])] = []
            for command in commands {
                for (number, command) in Self.addressed(command, &state) {
                    guard let hub = state.streams[number] else { continue }
                    // Commands that were posted together are executed together.
                    if letters.last?.hub === hub {
                        letters[letters.count - 1].commands.append(command)
                    } else {
                        letters.append((hub, [command]))
                    }
                }
            }
            return letters
        }
        for letter in letters { letter.hub.post(letter.commands) }
    }

    func room() async {}

    private static func addressed(
        _ command: LiveCommand, _ state: inout State
    ) -> [(UInt64, LiveCommand)] {
        switch command {
        case .send(let number, _), .show(let number, _), .close(let number, _, _),
            .mark(let number, _), .told(let number, _), .caughtUp(let number):
            return [(number, command)]
        case .join(let number, let group):
            state.join(number, group)
            return [(number, command)]
        case .leave(let number, let group):
            state.leave(number, group)
            return [(number, command)]
        case .deliver(let frames, let at, let position):
            var told: [UInt64: [LiveGroupFrame]] = [:]
            for frame in frames {
                for number in state.members[frame.group] ?? []
                where !frame.except.contains(number) {
                    told[number, default: []].append(frame)
                }
            }
            return told.map { ($0.key, .deliver($0.value, at, position)) }
        }
    }
}
