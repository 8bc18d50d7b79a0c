/// Judges changes beside the log, so that what follows them need not wait.
///
/// Its jobs may be done in any order and at any time, but each is to be done: the progress waits
/// for it.
package protocol SideJudge: Sendable {
    /// Has a job done, on whatever thread, before or after this returns.
    func judge(_ job: JudgingJob)

    /// The jobs that are done and were not taken before.
    func takeJudged() -> [JudgingJob]

    /// Returns when there may be jobs that are done and were not taken, or the task is cancelled.
    ///
    /// One task at a time may wait.
    func wait() async
}

/// What a follower needs to leave dear changes to a ``SideJudge``.
package struct BesideLog: Sendable {
    let judge: any SideJudge
    /// What may be handed over after a change that is judged still: it must fit the window of
    /// deliveries, or whoever takes it would wait for that change.
    let room: Int
    /// Steps that a change may take in the log's turn while there are others.
    let stepsInTurn: Int
    /// Changes that may be put off, each of which takes a place of the room; then the log waits.
    var mostChanges: Int { max(1, min(256, room / 2)) }

    /// Half a millisecond.
    package static let stepsInTurn = 250_000

    /// Has dear changes judged by `judge`.
    ///
    /// - Parameters:
    ///   - judge: Judges them.
    ///   - window: The deliveries that may be in flight.
    ///   - stepsInTurn: Steps that a change may take in the log's turn while there are others.
    package init(
        _ judge: any SideJudge, window: Int, stepsInTurn: Int = BesideLog.stepsInTurn
    ) {
        self.judge = judge
        self.stepsInTurn = stepsInTurn
        room = min(window / 2, 1024)
    }
}
