import Fanout
import RelayModel
import RelayServer
import Storage

/// Prints one line for each change of a sandbox: what it fired, or why it fired nothing.
///
/// The follower never waits for it. If the buffer of waiting changes is full, further ones are only
/// counted.
struct DevChronicle: Sendable {
    /// The maximum number of changes that wait to be printed.
    private static let room = 256
    /// The maximum number of subscriptions to ask why they did not fire.
    private static let mostAsked = 100

    private let changes = AsyncStream<JudgedChange>.makeStream(
        bufferingPolicy: .bufferingOldest(room))
    private let untold = UntoldCount()

    /// The callback through which the relay reports changes.
    var watch: ChangeWatch {
        ChangeWatch { [changes, untold] change in
            if case .dropped = changes.continuation.yield(change) { untold.count() }
        }
    }

    /// Prints the changes that `relay` judges, until the task is cancelled.
    func tell(of relay: Relay) async {
        for await change in changes.stream {
            StandardStreams.say(ShownText.plain(await line(change, relay)))
            let missed = untold.take()
            if missed > 0 {
                let changes = Counted.text(
                    missed, "change in between is", "changes in between are")
                StandardStreams.say("(\(changes) not shown)")
            }
        }
    }

    private func line(_ judged: JudgedChange, _ relay: Relay) async -> String {
        guard let change = try? judged.change.change() else {
            return JudgedLine.unreadable(judged)
        }
        let asked = try? await relay.subscriptions(
            to: change.recordType, in: judged.container, most: Self.mostAsked)
        // Subscriptions that were saved after the change did not take part.
        let versions = asked?.versions.filter { $0.activation < judged.position } ?? []
        return JudgedLine(
            judged: judged, change: change, subscriptions: versions,
            areAll: asked?.areAll ?? false
        ).text
    }
}
