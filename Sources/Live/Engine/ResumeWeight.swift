import RelayModel

/// The amount of text written for returning clients.
///
/// Each group has its own text, with the fields that its queries request. Without a bound, one
/// user's queries in many different forms could turn one log entry into gigabytes, and all
/// connected clients would wait for that.
struct ResumeWeight {
    /// A reader in a container, whose queries are counted together.
    struct Party: Hashable {
        let container: ContainerKey
        let reader: LiveReader
    }

    /// The bytes that are written in one turn, before the engine works on what has come meanwhile.
    private static let bytesOfTurn = 8 * 1024 * 1024
    private static let timeOfTurn = Duration.milliseconds(20)
    /// The number of turns in one reading of the log; clients that came meanwhile join the next
    /// one.
    private static let turnsOfReading = 32

    private var bytes = 0
    private var time = Duration.zero
    private var turns = 0
    private var parties: [Party: Int] = [:]

    /// Whether the turn is used up.
    var isTurnOver: Bool { bytes > Self.bytesOfTurn || time > Self.timeOfTurn }
    /// Whether the log is to be read again, for all clients that wait then.
    var isReadingOver: Bool { turns >= Self.turnsOfReading }

    mutating func beginReading() { turns = 0 }

    /// Forgets what was written for readers who no longer wait.
    mutating func finishReading(for waiting: Set<Party>) {
        parties = parties.filter { waiting.contains($0.key) }
    }

    mutating func beginTurn() {
        (bytes, time) = (0, .zero)
        turns += 1
    }

    /// Returns whether more may be written for a party; a server may ask for as much as it likes.
    func hasRoom(for party: Party, most: Int) -> Bool {
        party.reader == .server || parties[party, default: 0] <= most
    }

    /// Returns the bytes written for a container's clients.
    func bytes(for container: ContainerKey) -> Int {
        parties.reduce(0) { $1.key.container == container ? $0 + $1.value : $0 }
    }

    /// Counts what was written for a party; text that others are sent too counts once.
    mutating func add(_ bytes: Int, in time: Duration, for party: Party) {
        self.bytes += bytes
        self.time += time
        if bytes > 0 { parties[party, default: 0] += bytes }
    }
}
