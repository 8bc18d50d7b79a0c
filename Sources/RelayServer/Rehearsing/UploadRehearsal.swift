import RelayModel

/// Rehearses by lines that are sent along, as they come, for as long as the caller may.
struct UploadRehearsal {
    private var rehearsal: FileRehearsal
    private var lines: FileLines
    private let allowance: QueryAllowance
    private var isTurnOver: @Sendable () -> Bool

    init(_ rehearsal: FileRehearsal, within allowance: QueryAllowance) {
        self.rehearsal = rehearsal
        self.allowance = allowance
        lines = rehearsal.lines
        isTurnOver = allowance.beginTurn()
    }

    /// Takes the next line, which may be empty; `false` if no more are wanted.
    mutating func take(_ line: [UInt8], _ number: Int) async throws -> Bool {
        try await giveWay()
        guard !rehearsal.hasEnded else { return false }
        guard !line.isEmpty else { return true }
        let due = await lines.add(line, number)
        try await judge(due)
        return !rehearsal.hasEnded
    }

    /// The answer, once there are no more lines.
    mutating func concluded() async throws -> RehearseService.Answer {
        while !rehearsal.hasEnded, let due = await lines.rest() { try await judge(due) }
        return try rehearsal.concluded(isOver: { [allowance] in allowance.isOver })
    }

    private mutating func judge(_ due: [FileLine]) async throws {
        for line in due {
            try await giveWay()
            guard !rehearsal.hasEnded else { return }
            do {
                try rehearsal.take(line)
            } catch let error as APIError {
                throw error.inLine(line.number)
            }
        }
    }

    /// Lets others run at the end of a turn, and ends the rehearsal with its time.
    private mutating func giveWay() async throws {
        guard isTurnOver() else { return }
        if allowance.isOver {
            allowance.noteCut()
            return rehearsal.end()
        }
        // Others run on the same processors.
        await Task.yield()
        try Task.checkCancellation()
        isTurnOver = allowance.beginTurn()
    }
}

private extension APIError {
    /// The same, of one line of what was sent.
    func inLine(_ number: Int) -> APIError {
        APIError(code, "line \(number): \(reason)", retryAfter: retryAfter, details: details)
    }
}
