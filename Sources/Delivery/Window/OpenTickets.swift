/// The attempts that are with the gateway, by the numbers that it echoes.
struct OpenTickets: Sendable {
    private var tickets: [UInt64: DeliveryTracker.Ticket] = [:]
    private var next: UInt64 = 0

    /// Gives an attempt its number.
    mutating func open(_ ticket: DeliveryTracker.Ticket) -> UInt64 {
        defer { next += 1 }
        tickets[next] = ticket
        return next
    }

    /// Takes a number back; `nil` if the gateway has answered it before.
    mutating func close(_ number: UInt64) -> DeliveryTracker.Ticket? {
        tickets.removeValue(forKey: number)
    }
}
