import RelayModel

/// The limits of the engine on what connected clients may cost.
package struct LiveSettings: Sendable, Hashable {
    /// The number of log entries that are read at a time.
    static let entriesPerRead = 256
    /// The number of entries that may wait for the end of their request; a longer request is sent
    /// in pieces.
    static let mostHeld = 10_000
    /// The number of records that may change during a reading; beyond that, it begins anew.
    static let mostAside = 10_000
    /// How many times the indexes are asked about one change if conditions take too many steps;
    /// each attempt takes as long as one change may.
    static let questionsPerChange = 4
    /// The bytes of waiting fences for one client, about.
    static let fenceBytes = 16 * 1024
    /// The number of clients that one post tells how far everything has been sent.
    static let beatsPerPost = 256
    /// The steps that conditions may take for one change while other containers have clients.
    ///
    /// It is so many that texts of the change are read for a fifth of a second at most.
    static let stepsBesideOthers = Limits.maximumStepsPerChange - 1
    /// The same limit for a container whose conditions have taken too much of the shared time.
    static let stepsOfDebtor = 1_000_000
    /// How long an unused group is kept, so that a page that is loaded again finds it.
    static let afterlife = Duration.seconds(10)

    /// The number of records in one reading.
    package var rowsPerReading = 200_000
    /// The number of readings at a time.
    package var readings = 2
    /// The number of records in a result without a limit.
    package var recordsPerResult = 10_000
    /// The bytes of the records in a result without a limit, about.
    package var bytesPerResult = 8 * 1024 * 1024
    /// The number of members in a result with a limit.
    package var membersPerWindow = 100_000
    /// The bytes of all members of all results, about.
    package var memory = 256 * 1024 * 1024
    /// The bytes of one user's different queries, without members, about.
    package var queryBytesPerUser = 16 * 1024 * 1024
    /// The bytes that are written for one change for the queries of one user, about.
    package var bytesPerChange = 32 * 1024 * 1024
    /// The number of entries that are read for returning clients, before they begin anew.
    package var entriesPerResume = 50_000
    /// The number of entries of all containers that are passed to find these.
    package var entriesReadPerResume = 200_000
    /// The bytes of entries that are read for the returning clients of one container.
    package var bytesPerResume = 32 * 1024 * 1024
    /// The bytes for all containers in one reading; containers beyond that wait for the next
    /// reading.
    var bytesPerReading: Int { 4 * bytesPerResume }
    /// The bytes that are written for these entries for the queries of one user, about.
    var bytesToldPerResume: Int { 2 * bytesPerResume }
    /// The bytes that are written of that for one client.
    ///
    /// They must fit into the 32 MiB that may wait for a connection, beside the lists of a hundred
    /// results.
    var bytesToldPerClient = 24 * 1024 * 1024
    /// The number of pairs of such an entry and a group that is sent it.
    package var toldPerResume = 500_000

    /// The number of waiting results from which on a reading may use the container's own index.
    var manyWaiting = 1000
    /// The judging time owed by a container from which on its conditions count as taking too much,
    /// while other containers have clients.
    var mostJudgingOwed = Duration.seconds(5)
    /// The steps that the conditions of one container may take for one change, or for a record that
    /// is read.
    var stepsPerChange = Limits.maximumStepsPerChange

    package init() {}
}
