/// Judges changes beside the log, so that the entries after them need not wait.
///
/// The jobs may be done in any order and at any time, but each must be done: the progress waits for
/// it.
package protocol SideJudge: Sendable {
    /// Does a job on any thread, before or after this method returns.
    func judge(_ job: JudgingJob)

    /// Takes the jobs that are done.
    func takeJudged() -> [JudgingJob]

    /// Waits until there may be finished jobs to take, or until the task is cancelled.
    ///
    /// Only one task at a time may wait.
    func wait() async
}

/// What a follower needs in order to leave dear changes to a ``SideJudge``.
package struct BesideLog: Sendable {
    let judge: any SideJudge
    /// The number of items that may be handed over after a change that is still being judged.
    ///
    /// It must fit into the window of deliveries. Otherwise the receiver would wait for that
    /// change.
    let room: Int
    /// The number of steps that a change may take in the log's turn while other containers write
    /// too.
    let stepsInTurn: Int
    /// The maximum number of changes that may be put off, each of which takes a place of the room.
    ///
    /// Beyond it, the log waits.
    var mostChanges: Int { max(1, min(256, room / 2)) }

    /// The default number of steps, which take about half a millisecond.
    package static let stepsInTurn = 250_000

    /// Creates the settings.
    ///
    /// - Parameters:
    ///   - judge: The judge of dear changes.
    ///   - window: The number of deliveries that may be in flight.
    ///   - stepsInTurn: The number of steps that a change may take in the log's turn while other
    ///     containers write too.
    package init(
        _ judge: any SideJudge, window: Int, stepsInTurn: Int = BesideLog.stepsInTurn
    ) {
        self.judge = judge
        self.stepsInTurn = stepsInTurn
        room = min(window / 2, 1024)
    }
}
