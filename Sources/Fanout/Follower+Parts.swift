import RelayModel
import Storage

// How a fan-out is divided, and how its size counts. A fan-out owes pushes, and a user may have a
// thousand devices and ten thousand subscriptions. If only subscriptions counted, one change for
// one user could hold the log's turn for millions of pushes.
extension Follower {
    /// The number of devices of a user up to which devices do not count.
    ///
    /// A fan-out to users with a few devices each counts as many as there are subscriptions.
    private static var usualDevices: Int { 4 }
    /// The approximate number of pushes of one part.
    ///
    /// The pushes of one subscription are never divided.
    private static var pushesPerPart: Int { 4096 }

    /// Returns the size of a fan-out to the subscriptions with these serials.
    func size(of fired: [UInt64], _ entry: FollowedEntry) -> Int {
        let most = state.mostDevicesOfOne(in: entry.container)
        guard most > Self.usualDevices else { return fired.count }
        var pushes = 0
        for serial in fired { pushes += state.reach(of: serial, in: entry.container) }
        return max(fired.count, pushes / Self.usualDevices)
    }

    /// Divides the subscriptions with these serials into parts of at most `most`.
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

    /// Returns the ranges of a fan-out to the subscriptions with these serials, which must still be
    /// active.
    func ranges(of serials: [UInt64], _ entry: FollowedEntry) -> [NewRange] {
        parts(of: serials, by: Self.subscriptionsPerRange, entry.container).map {
            NewRange(
                container: entry.container, position: entry.position, serials: Array($0))
        }
    }
}
