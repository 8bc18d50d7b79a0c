import Platform

/// Where a group lies in memory, of a container that has it for as long.
///
/// Between two changes other work has taken the processor's caches, and who looks at one group
/// after the other waits for each: for a change that moves a record in 25 of 10,000 windows that
/// took a fifth of all that is done.
@safe
struct GroupPlace {
    /// Not counted as a reference, which would write to the group, and wait for it.
    private let group: Unmanaged<LiveGroup>

    init(_ group: LiveGroup) {
        unsafe self.group = Unmanaged.passUnretained(group)
    }

    /// Has the processor fetch what a change looks at.
    func fetch() {
        unsafe prefetch(group.toOpaque(), lines: 3)
    }

    /// Has it fetch the members, which it waits for the group to find.
    func fetchMembers() {
        unsafe group._withUnsafeGuaranteedRef { $0.members?.fetch() }
    }
}
