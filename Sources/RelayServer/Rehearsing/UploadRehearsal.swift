import RelayModel

/// Rehearses with uploaded lines as they arrive, within the caller's time.
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

    /// Takes the next line, which may be empty; returns `false` if no more lines are wanted.
    mutating func take(_ line: [UInt8], _ number: Int) async throws -> Bool {
        try await giveWay()
        guard !rehearsal.hasEnded else { return false }
        guard !line.isEmpty else { return true }
        let due = await lines.add(line, number)
        try await judge(due)
        return !rehearsal.hasEnded
    }

    /// Returns the answer, after the last line.
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

    /// Yields at the end of a turn, and ends the rehearsal when its time is over.
    private mutating func giveWay() async throws {
        guard isTurnOver() else { return }
        if allowance.isOver {
            allowance.noteCut()
            return rehearsal.end()
        }
        // Other tasks run on the same processors.
        await Task.yield()
        try Task.checkCancellation()
        isTurnOver = allowance.beginTurn()
    }
}

private extension APIError {
    /// Returns the error with the number of the uploaded line.
    func inLine(_ number: Int) -> APIError {
        APIError(code, "line \(number): \(reason)", retryAfter: retryAfter, details: details)
    }
}
