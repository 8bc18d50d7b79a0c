import RelayModel

/// How much of bodies is held in memory: a pure value.
///
/// Room is taken as a body comes, and not as it is announced, so that an announcement holds none.
/// One container gets the half at most. The last eighth, of all and of a container's half, is for
/// the beginnings of bodies, so that short requests, which are nearly all, pass while long ones
/// wait, whoever sends them.
struct BodyBudget: Sendable {
    /// What is taken at once.
    static let portion = 65_536

    private let room: Int
    private(set) var used = 0
    private var byContainer: [ContainerKey: Int] = [:]

    init(room: Int) {
        self.room = room
    }

    /// The longest body that one container can ever send, where there is so much room in all.
    static func longestBody(within room: Int) -> Int {
        let own = room / 2
        return own - own / 8
    }

    /// Takes `bytes`, if there is room for them.
    mutating func take(_ bytes: Int, for container: ContainerKey?, isBeginning: Bool) -> Bool {
        func isRoom(for taken: Int, of room: Int) -> Bool {
            taken <= (isBeginning ? room : room - room / 8)
        }
        guard isRoom(for: used + bytes, of: room) else { return false }
        if let container {
            let own = byContainer[container, default: 0] + bytes
            guard isRoom(for: own, of: room / 2) else { return false }
            byContainer[container] = own
        }
        used += bytes
        return true
    }

    /// Gives back what was taken.
    mutating func give(_ bytes: Int, of container: ContainerKey?) {
        used -= bytes
        guard let container, let own = byContainer[container] else { return }
        byContainer[container] = own > bytes ? own - bytes : nil
    }
}
