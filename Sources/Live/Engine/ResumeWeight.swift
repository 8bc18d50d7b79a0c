import RelayModel

/// What has been written for those who come back.
///
/// Each group has a text of its own, with the fields that its queries ask for: so the queries of
/// one user, each of another form, would have gigabytes written of what the log holds once, and all
/// who are connected would wait for that.
struct ResumeWeight {
    /// Whose queries are counted together.
    struct Party: Hashable {
        let container: ContainerKey
        let reader: LiveReader
    }

    /// What is written in one go, before what has come meanwhile has its turn.
    private static let bytesOfTurn = 8 * 1024 * 1024
    private static let timeOfTurn = Duration.milliseconds(20)
    /// Turns by one reading of the log; those who came meanwhile are among the next one's.
    private static let turnsOfReading = 32

    private var bytes = 0
    private var time = Duration.zero
    private var turns = 0
    private var parties: [Party: Int] = [:]

    /// Whether others have their turn.
    var isTurnOver: Bool { bytes > Self.bytesOfTurn || time > Self.timeOfTurn }
    /// Whether the log is to be read anew, for all who wait then.
    var isReadingOver: Bool { turns >= Self.turnsOfReading }

    mutating func beginReading() { turns = 0 }

    /// Forgets what was written for those who have been told everything.
    mutating func finishReading(for waiting: Set<Party>) {
        parties = parties.filter { waiting.contains($0.key) }
    }

    mutating func beginTurn() {
        (bytes, time) = (0, .zero)
        turns += 1
    }

    /// Whether more may be written for somebody; a server may ask for what it likes.
    func hasRoom(for party: Party, most: Int) -> Bool {
        party.reader == .server || parties[party, default: 0] <= most
    }

    /// What was written for a container's clients.
    func bytes(for container: ContainerKey) -> Int {
        parties.reduce(0) { $1.key.container == container ? $0 + $1.value : $0 }
    }

    /// Counts what was written for somebody; what others are told too counts once.
    mutating func add(_ bytes: Int, in time: Duration, for party: Party) {
        self.bytes += bytes
        self.time += time
        if bytes > 0 { parties[party, default: 0] += bytes }
    }
}
