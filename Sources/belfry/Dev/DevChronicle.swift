import Fanout
import RelayModel
import RelayServer
import Storage

/// Says of each change of a sandbox, in one line, what it fired, or why it did not.
///
/// The follower waits for nobody: what comes while as many changes wait as there is room for is
/// counted, and not told.
struct DevChronicle: Sendable {
    /// Changes that wait to be told.
    private static let room = 256
    /// Subscriptions that are asked why they were not fired.
    private static let mostAsked = 100

    private let changes = AsyncStream<JudgedChange>.makeStream(
        bufferingPolicy: .bufferingOldest(room))
    private let untold = UntoldCount()

    /// What the relay tells.
    var watch: ChangeWatch {
        ChangeWatch { [changes, untold] change in
            if case .dropped = changes.continuation.yield(change) { untold.count() }
        }
    }

    /// Tells of the changes that `relay` judges, until the task is cancelled.
    func tell(of relay: Relay) async {
        for await change in changes.stream {
            StandardStreams.say(ShownText.plain(await line(change, relay)))
            let missed = untold.take()
            if missed > 0 {
                let changes = Counted.text(
                    missed, "change in between is", "changes in between are")
                StandardStreams.say("(\(changes) not told)")
            }
        }
    }

    private func line(_ judged: JudgedChange, _ relay: Relay) async -> String {
        guard let change = try? judged.change.change() else {
            return JudgedLine.unreadable(judged)
        }
        let asked = try? await relay.subscriptions(
            to: change.recordType, in: judged.container, most: Self.mostAsked)
        // Whoever was saved after the change was not asked.
        let versions = asked?.versions.filter { $0.activation < judged.position } ?? []
        return JudgedLine(
            judged: judged, change: change, subscriptions: versions,
            areAll: asked?.areAll ?? false
        ).text
    }
}
