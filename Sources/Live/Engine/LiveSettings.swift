import RelayModel

/// What bounds connected clients, and what they may cost.
package struct LiveSettings: Sendable, Hashable {
    /// Entries of the log that are read at a time.
    static let entriesPerRead = 256
    /// Entries that wait for the end of their request; of more it is told in pieces.
    static let mostHeld = 10_000
    /// Records that may change while all are read, before the reading begins anew.
    static let mostAside = 10_000
    /// How often it is asked who is told a change, where conditions took too much: each time takes
    /// as long as one change may.
    static let questionsPerChange = 4
    /// Bytes of the names of fences that wait for what is read for a client, about.
    static let fenceBytes = 16 * 1024
    /// Clients that are told together how far everything has been told.
    static let beatsPerPost = 256
    /// Steps that conditions may take of one change where other containers' clients are connected:
    /// so many that texts of it are read for a fifth of a second and no longer.
    static let stepsBesideOthers = Limits.maximumStepsPerChange - 1
    /// The same where the conditions of the container have taken too much of the time of all.
    static let stepsOfDebtor = 1_000_000
    /// How long a group without members is kept, so that a page that is loaded anew finds it.
    static let afterlife = Duration.seconds(10)

    /// Records of one reading.
    package var rowsPerReading = 200_000
    /// Readings at a time.
    package var readings = 2
    /// Records of a result without a limit.
    package var recordsPerResult = 10_000
    /// Their bytes, about.
    package var bytesPerResult = 8 * 1024 * 1024
    /// Members of a result with a limit.
    package var membersPerWindow = 100_000
    /// Bytes of all members, about.
    package var memory = 256 * 1024 * 1024
    /// Bytes of what one user's different queries take besides that, about.
    package var queryBytesPerUser = 16 * 1024 * 1024
    /// Bytes that are written of one change for the queries of one user, about.
    package var bytesPerChange = 32 * 1024 * 1024
    /// Entries that are read for those who come back, before they begin anew.
    package var entriesPerResume = 50_000
    /// Entries of all containers that are gone through for that.
    package var entriesReadPerResume = 200_000
    /// Bytes of the entries that are read for the clients of one container who come back.
    package var bytesPerResume = 32 * 1024 * 1024
    /// Those of all containers together; the others have another reading.
    var bytesPerReading: Int { 4 * bytesPerResume }
    /// Bytes that are written of these entries for the queries of one user, about.
    var bytesToldPerResume: Int { 2 * bytesPerResume }
    /// How often, in all, one of these entries belongs to what a group is told.
    package var toldPerResume = 500_000

    /// From how many results that wait on they are not filed once more to be read.
    var manyWaiting = 1000
    /// Beyond which what a container's conditions have taken of the time of all is too much, where
    /// others are connected.
    var mostJudgingOwed = Duration.seconds(5)
    /// Steps that the conditions of one container may take of one change, or of a record that is
    /// read.
    var stepsPerChange = Limits.maximumStepsPerChange

    package init() {}
}
