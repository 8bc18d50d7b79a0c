import RelayModel

/// How much memory request bodies take: a pure value.
///
/// Memory is taken while a body arrives, and not when it is announced, so that an announcement
/// takes none. One container gets at most half of it. The last eighth, both of all and of a
/// container's half, is reserved for the beginnings of bodies. So short requests, which are nearly
/// all, pass while long ones wait.
struct BodyBudget: Sendable {
    /// The size of a beginning in bytes, within which a body may use the reserve.
    static let portion = 65_536

    private let room: Int
    private(set) var used = 0
    private var byContainer: [ContainerKey: Int] = [:]

    init(room: Int) {
        self.room = room
    }

    /// Returns the longest body that one container can ever send, if `room` is the memory for all.
    static func longestBody(within room: Int) -> Int {
        let own = room / 2
        return own - own / 8
    }

    /// Takes `bytes` if there is memory for them; returns whether there was.
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

    /// Returns memory.
    mutating func give(_ bytes: Int, of container: ContainerKey?) {
        used -= bytes
        guard let container, let own = byContainer[container] else { return }
        byContainer[container] = own > bytes ? own - bytes : nil
    }
}
