import RelayModel
import Storage

// How a fan-out is parted, and how large it counts. What is owed are pushes, and a user may have a
// thousand devices and ten thousand subscriptions: counted by subscriptions, one change of one user
// kept everybody's turn for millions of pushes.
extension Follower {
    /// Devices that a user has, as far as they are not counted: a fan-out to people with a few
    /// devices each is as large as they are many.
    private static var usualDevices: Int { 4 }
    /// Pushes of one part, about; those of one subscription are never parted.
    private static var pushesPerPart: Int { 4096 }

    /// How large a fan-out to the subscriptions with these serials counts.
    func size(of fired: [UInt64], _ entry: FollowedEntry) -> Int {
        let most = state.mostDevicesOfOne(in: entry.container)
        guard most > Self.usualDevices else { return fired.count }
        var pushes = 0
        for serial in fired { pushes += state.reach(of: serial, in: entry.container) }
        return max(fired.count, pushes / Self.usualDevices)
    }

    /// The subscriptions with these serials in parts, each of `most` at the most.
    func parts(
        of serials: [UInt64], by most: Int, _ container: ContainerKey
    ) -> [ArraySlice<UInt64>] {
        guard state.mostDevicesOfOne(in: container) * most > Self.pushesPerPart else {
            return stride(from: 0, to: serials.count, by: most).map {
                serials[$0..<min($0 + most, serials.count)]
            }
        }
        var parts: [ArraySlice<UInt64>] = []
        var (start, pushes) = (0, 0)
        for (index, serial) in serials.enumerated() {
            let reach = state.reach(of: serial, in: container)
            let isFull = index - start == most || pushes + reach > Self.pushesPerPart
            if isFull, index > start {
                parts.append(serials[start..<index])
                (start, pushes) = (index, 0)
            }
            pushes += reach
        }
        if start < serials.count { parts.append(serials[start...]) }
        return parts
    }

    /// The ranges of a fan-out to the subscriptions with these serials, which are active still.
    func ranges(of serials: [UInt64], _ entry: FollowedEntry) -> [NewRange] {
        parts(of: serials, by: Self.subscriptionsPerRange, entry.container).map {
            NewRange(
                container: entry.container, position: entry.position, serials: Array($0))
        }
    }
}
