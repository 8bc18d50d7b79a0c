import RelayModel
import Storage

/// Runs appends when it is their container's turn.
struct ContainerTurns: Sendable {
    /// Slows containers that append faster than the log is followed; `nil` if nothing follows it.
    let turns: IntakeTurns?

    /// Returns how many changes of a divisible request may be appended at a time.
    func portion(of container: ContainerKey) -> Int {
        turns?.portion(of: container) ?? .max
    }

    /// Creates the time limit of a request that is appended in parts.
    var partedTime: PartedTime { PartedTime(turns) }

    /// Runs `body`, which appends `changes` changes, when it is the container's turn.
    ///
    /// `besides` returns how many more changes `body` appended (negative for fewer), and `last` the
    /// position of the last one.
    func run<Value: Sendable>(
        of container: ContainerKey, changes: Int, besides: (Value) -> Int = { _ in 0 },
        last: (Value) async throws -> LogPosition?, _ body: () async throws -> Value
    ) async throws -> Value {
        guard let turns else { return try await body() }
        return try await turns.run(container, changes: changes, besides: besides) {
            let value = try await body()
            return (value, try await last(value))
        }
    }
}
