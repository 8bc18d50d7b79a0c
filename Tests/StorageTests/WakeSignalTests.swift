import RelayTestKit
import Storage
import Synchronization
import Testing

private final class Count: Sendable {
    let value = Atomic<Int>(0)
}

@Suite struct WakeSignalTests {
    @Test func `an early wake-up is kept, once`() async {
        let signal = WakeSignal()
        signal.raise()
        signal.raise()
        await signal.wait()
        let waiting = Task { await signal.wait() }
        await Turns.pass(100)
        signal.raise()
        await waiting.value
    }

    @Test func `a cancelled wait ends and leaves the next wake-up alone`() async {
        let signal = WakeSignal()
        for _ in 0..<200 {
            let waiting = Task { await signal.wait() }
            waiting.cancel()
            await waiting.value
        }
        signal.raise()
        await signal.wait()
    }

    /// A task that looks at the work after each wait sees all of it, however many threads raise the
    /// signal.
    @Test func `no wake-up is lost between many threads`() async {
        let signal = WakeSignal()
        let raised = Count()
        let total = 8 * 2000
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                while raised.value.load(ordering: .acquiring) < total { await signal.wait() }
            }
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<2000 {
                        raised.value.wrappingAdd(1, ordering: .acquiringAndReleasing)
                        signal.raise()
                    }
                }
            }
        }
        #expect(raised.value.load(ordering: .acquiring) == total)
    }

    @Test func `raising and cancelling at the same time always ends the wait`() async {
        for _ in 0..<2000 {
            let signal = WakeSignal()
            let waiting = Task { await signal.wait() }
            async let raising: Void = { signal.raise() }()
            waiting.cancel()
            await raising
            await waiting.value
        }
    }
}
