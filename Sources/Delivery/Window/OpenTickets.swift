/// The attempts that are with the gateway, by the numbers that it returns.
struct OpenTickets: Sendable {
    private var tickets: [UInt64: DeliveryTracker.Ticket] = [:]
    private var next: UInt64 = 0

    /// Assigns a number to an attempt.
    mutating func open(_ ticket: DeliveryTracker.Ticket) -> UInt64 {
        defer { next += 1 }
        tickets[next] = ticket
        return next
    }

    /// Takes a number back.
    ///
    /// Returns `nil` if the gateway has already answered it.
    mutating func close(_ number: UInt64) -> DeliveryTracker.Ticket? {
        tickets.removeValue(forKey: number)
    }
}
