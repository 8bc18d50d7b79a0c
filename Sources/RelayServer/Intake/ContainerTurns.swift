import RelayModel
import Storage

/// Lets what appends changes run once it is its container's turn.
struct ContainerTurns: Sendable {
    /// Holds containers that append faster than they are followed; `nil` where nobody follows.
    let turns: IntakeTurns?

    /// How many changes of a request that can be parted are to go in at a time.
    func portion(of container: ContainerKey) -> Int {
        turns?.portion(of: container) ?? .max
    }

    /// The time of a request that goes in part by part.
    var partedTime: PartedTime { PartedTime(turns) }

    /// Runs `body`, which appends so many changes, once it is the container's turn; `besides` says
    /// how many more it appended, below 0 how many fewer, and `last` where the last of them stands.
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
