import CCurl
import RelayModel
import Testing

@testable import Gateway

/// A generator of evenly spaced numbers, so that draws are known.
struct CountingGenerator: RandomNumberGenerator, Sendable {
    var value: UInt64

    mutating func next() -> UInt64 {
        defer { value &+= 0x9E37_79B9_7F4A_7C15 }
        return value
    }
}

@Suite struct AdaptiveWidthTests {
    @Test func `a burst of refusals halves the width once`() {
        var width = AdaptiveWidth(maximum: 100)
        for moment in 0..<50 { width.refuse(at: at(UInt64(1000 + moment))) }
        #expect(width.current == 50)
        width.refuse(at: at(1600))
        #expect(width.current == 25)
    }

    @Test func `the width never falls below one`() {
        var width = AdaptiveWidth(maximum: 4)
        for burst in 1...10 { width.refuse(at: at(UInt64(burst * 1000))) }
        #expect(width.current == 1)
    }

    @Test func `success raises the width by a tenth a second up to the maximum`() {
        var width = AdaptiveWidth(maximum: 100)
        width.refuse(at: at(0))
        width.accept(at: at(999))
        #expect(width.current == 50)
        width.accept(at: at(1000))
        width.accept(at: at(1001))
        #expect(width.current == 55)
        for second in 2...20 { width.accept(at: at(UInt64(second * 1000))) }
        #expect(width.current == 100)
    }
}

@Suite struct PoolBackOffTests {
    @Test func `the pause doubles up to its cap and is spread over its upper half`() {
        var backOff = PoolBackOff()
        var generator = CountingGenerator(value: 7)
        var now = at(1000)
        for failure in 0..<12 {
            backOff.fail(cause: "no route", at: now, using: &generator)
            let step = min(PoolBackOff.base * (1 << failure), PoolBackOff.cap)
            let pause = backOff.remaining(at: now)
            #expect(pause >= step / 2 && pause <= step)
            now = now.advanced(by: pause)
            #expect(backOff.remaining(at: now) == .zero)
        }
    }

    @Test func `success after the pause forgets the failures`() {
        var backOff = PoolBackOff()
        var generator = CountingGenerator(value: 7)
        backOff.fail(cause: "no route", at: at(0), using: &generator)
        backOff.succeed(at: at(500))
        #expect(backOff == PoolBackOff())
    }

    @Test func `success during the pause does not end it`() {
        var backOff = PoolBackOff()
        var generator = CountingGenerator(value: 7)
        let isNews = backOff.fail(cause: "503", at: at(0), using: &generator)
        let isNewsAgain = backOff.fail(cause: "503", at: at(1), using: &generator)
        #expect([isNews, isNewsAgain] == [true, false])
        let pause = backOff.remaining(at: at(0))
        backOff.succeed(at: at(1))
        #expect(backOff.remaining(at: at(0)) == pause)
        backOff.succeed(at: at(0).advanced(by: pause))
        #expect(backOff == PoolBackOff())
    }
}

@Suite struct ContainerPatienceTests {
    @Test func `one container waits, and others with its credential do not`() throws {
        var patience = ContainerPatience()
        var generator = CountingGenerator(value: 7)
        let pushes = try (1...3).map { WaitingPush(request: try .sample(ticket: $0)) }
        let container = pushes[0].request.container
        let other = ContainerKey(container: container.container, environment: .development)
        #expect(patience.verdict(on: container, at: at(0)) == .go)
        let first = patience.fail(container, cause: "503", at: at(0), using: &generator)
        #expect(first.map { $0 <= PoolBackOff.base } == true)
        #expect(patience.verdict(on: container, at: at(0)) == .hold)
        #expect(patience.verdict(on: other, at: at(0)) == .go)
        for push in pushes { patience.hold(push) }
        #expect(patience.heldCount == 3)
        #expect(patience.wakesAt.map { $0.duration(since: at(0)) } == first)
        #expect(patience.release(at: at(1)).isEmpty)
        #expect(patience.release(at: at(500)).count == 3)
        #expect(patience.heldCount == 0)
        // The fourth pause in a row is longer than a push may be held.
        for round in 1...5 {
            _ = patience.fail(
                container, cause: "503", at: at(60_000 * UInt64(round)), using: &generator)
        }
        let verdict = patience.verdict(on: container, at: at(300_000))
        guard case .giveBack(let cause) = verdict else {
            Issue.record("\(verdict)")
            return
        }
        #expect(cause.reason == "503" && cause.detail.hasPrefix("trying again in"))
        patience.hold(pushes[0])
        #expect(patience.forget(container).count == 1)
        #expect(patience.verdict(on: container, at: at(300_000)) == .go)
    }
}

@Suite struct PoolGrowthTests {
    @Test func `the first connection is opened at once`() {
        var growth = PoolGrowth()
        let opens = growth.opens(usable: 0, maximum: 1, at: at(0))
        #expect(opens)
    }

    @Test func `another connection is opened when all were full for a while`() {
        var growth = PoolGrowth()
        let first = growth.opens(usable: 1, maximum: 2, at: at(0))
        let early = growth.opens(usable: 1, maximum: 2, at: at(99))
        let late = growth.opens(usable: 1, maximum: 2, at: at(100))
        #expect([first, early, late] == [false, false, true])
    }

    @Test func `a free place in between restarts the wait`() {
        var growth = PoolGrowth()
        _ = growth.opens(usable: 1, maximum: 2, at: at(0))
        growth.relax()
        let late = growth.opens(usable: 1, maximum: 2, at: at(100))
        #expect(!late)
    }

    @Test func `a connection that is still ramping up delays the next one`() {
        var growth = PoolGrowth()
        _ = growth.opens(usable: 1, maximum: 2, at: at(0))
        let ramping = growth.opens(usable: 1, ramping: 1, maximum: 2, at: at(200))
        let again = growth.opens(usable: 1, maximum: 2, at: at(201))
        #expect([ramping, again] == [false, false])
    }

    @Test func `there are never more than the maximum`() {
        var growth = PoolGrowth()
        _ = growth.opens(usable: 2, maximum: 2, at: at(0))
        let late = growth.opens(usable: 2, maximum: 2, at: at(10_000))
        #expect(!late)
    }
}

@Suite struct LoopPacingTests {
    /// Checks a rest; all times are in microseconds.
    private func check(
        open: Int, moved: Int, elapsed: Int, latency: Int, rest: Int,
        at place: SourceLocation = #_sourceLocation
    ) {
        let found = LoopPacing.rest(
            open: open, moved: moved, elapsed: .microseconds(elapsed),
            latency: .microseconds(latency))
        #expect(found == .microseconds(rest), sourceLocation: place)
    }

    @Test func `the thread rests if few requests end quickly`() {
        check(open: 1, moved: 1, elapsed: 100, latency: 0, rest: 900)
        check(open: 1, moved: 1, elapsed: 1000, latency: 0, rest: 0)
        check(open: 1, moved: 1, elapsed: 100_000, latency: 0, rest: 0)
        check(open: 5, moved: 7, elapsed: 100, latency: 5000, rest: 900)
    }

    @Test func `the thread does not rest under load`() {
        check(open: 5, moved: 8, elapsed: 100, latency: 5000, rest: 0)
        check(open: 250, moved: 30, elapsed: 0, latency: 5000, rest: 1000)
        check(open: 250, moved: 31, elapsed: 0, latency: 5000, rest: 0)
    }

    @Test func `the thread rests longer for a slow gateway`() {
        check(open: 250, moved: 100, elapsed: 0, latency: 30_000, rest: 1500)
        check(open: 250, moved: 100, elapsed: 500, latency: 50_000, rest: 1500)
        check(open: 250, moved: 100, elapsed: 500, latency: 5_000_000, rest: 1500)
        check(open: 250, moved: 100, elapsed: 2000, latency: 50_000, rest: 0)
    }

    @Test func `a gateway's latency is a moving average`() {
        var latency = AnswerLatency()
        latency.note(.milliseconds(16))
        #expect(latency.average == .milliseconds(16))
        latency.note(.milliseconds(32))
        #expect(latency.average == .milliseconds(17))
    }
}

@Suite struct TransferVerdictTests {
    private func check(
        _ code: CURLcode, isPlaced: Bool, isEstablished: Bool = true,
        _ fate: TransferVerdict.Fate, _ ending: ConnectionLife.Ending
    ) {
        let verdict = TransferVerdict(
            .init(
                code: code.rawValue, isPlaced: isPlaced, isConnectionEstablished: isEstablished))
        #expect(verdict.fate == fate, "\(code)")
        #expect(verdict.ending == ending, "\(code)")
    }

    @Test func `a request never written on a failed connection was not sent`() {
        for code in [
            CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
            CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
            CURLE_OPERATION_TIMEDOUT, CURLE_ABORTED_BY_CALLBACK,
        ] {
            check(
                code, isPlaced: false, isEstablished: false, .notSent, .broke(.connectFailed))
        }
    }

    @Test func `a request never written on a working connection goes to another one`() {
        check(CURLE_COULDNT_CONNECT, isPlaced: false, .moveOn, .broke(.closing))
        check(CURLE_SEND_ERROR, isPlaced: false, .moveOn, .broke(.closing))
    }

    @Test func `a request that may have been processed ends as unknown`() {
        check(CURLE_COULDNT_CONNECT, isPlaced: true, .unknown, .broke(.closing))
        check(CURLE_OPERATION_TIMEDOUT, isPlaced: true, .unknown, .timedOut)
        check(CURLE_HTTP2_STREAM, isPlaced: true, .unknown, .failed)
        for code in [
            CURLE_HTTP2, CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR,
            CURLE_RECV_ERROR, CURLE_SEND_FAIL_REWIND, CURLE_OUT_OF_MEMORY,
        ] {
            check(code, isPlaced: true, .unknown, .broke(.broken))
        }
    }

    @Test func `a stream that the gateway refused was not processed, whatever libcurl says`() {
        let codes = [
            CURLE_COULDNT_CONNECT, CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_RECV_ERROR,
            CURLE_SEND_ERROR, CURLE_OPERATION_TIMEDOUT, CURLE_PARTIAL_FILE,
        ]
        for code in codes {
            for refusal in [StreamRefusal.stream, .goodbye] {
                let verdict = verdict(code, refusal)
                #expect(verdict.fate == .moveOn)
                #expect(verdict.ending == .broke(.closing))
            }
            for refusal in [StreamRefusal.none, .unheard] {
                #expect(verdict(code, refusal).fate == .unknown)
            }
        }
        #expect(verdict(CURLE_OK, .goodbye).fate == .answered)
    }

    @Test func `an accepted answer is not lost, unless the stream was refused`() {
        for code in [CURLE_HTTP2_STREAM, CURLE_RECV_ERROR, CURLE_OPERATION_TIMEDOUT] {
            let accepted = verdict(code, .none, isAccepted: true)
            #expect(accepted.fate == .accepted)
            #expect(accepted.ending == verdict(code, .none).ending)
            #expect(!accepted.isCrowded)
            #expect(verdict(code, .stream, isAccepted: true).fate == .moveOn)
        }
    }

    @Test func `only refused or reset streams are a sign of too many streams`() {
        #expect(verdict(CURLE_COULDNT_CONNECT, .stream).isCrowded)
        #expect(!verdict(CURLE_COULDNT_CONNECT, .goodbye).isCrowded)
        #expect(!verdict(CURLE_COULDNT_CONNECT, .none).isCrowded)
        #expect(verdict(CURLE_COULDNT_CONNECT, .unheard).isCrowded)
        #expect(verdict(CURLE_HTTP2_STREAM, .none).isCrowded)
        for code in [CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_HTTP2, CURLE_OPERATION_TIMEDOUT] {
            #expect(!verdict(code, .none).isCrowded)
            #expect(!verdict(code, .unheard).isCrowded)
        }
    }

    private func verdict(
        _ code: CURLcode, _ refusal: StreamRefusal, isAccepted: Bool = false
    ) -> TransferVerdict {
        TransferVerdict(
            .init(
                code: code.rawValue, isPlaced: true, isConnectionEstablished: true,
                refusal: refusal, isAccepted: isAccepted))
    }

    @Test func `no libcurl code except success counts as an answer`() {
        for raw in 1...99 as ClosedRange<UInt32> {
            for isPlaced in [true, false] {
                for isEstablished in [true, false] {
                    let verdict = TransferVerdict(
                        .init(
                            code: raw, isPlaced: isPlaced,
                            isConnectionEstablished: isEstablished))
                    #expect(verdict.fate != .answered)
                    #expect((verdict.fate == .unknown) == isPlaced)
                }
            }
        }
    }

    @Test func `a cause names what happened, and keeps libcurl's own words separate`() {
        let known = TransferCause.text(
            code: CURLE_PEER_FAILED_VERIFICATION.rawValue, isEstablished: false,
            detail: "self-signed certificate")
        #expect(
            known
                == PushCause(
                    "the gateway's certificate is not trusted", detail: "self-signed certificate"))
        #expect(
            TransferCause.text(code: 98, isEstablished: true, detail: "") == "libcurl's error 98")
        let refused = TransferCause.text(
            code: CURLE_HTTP2_STREAM.rawValue, isEstablished: true, isRefused: true, detail: "")
        #expect(refused == "the gateway closes the connection or refused the stream")
        let texts = [true, false].map { isEstablished in
            TransferCause.text(
                code: CURLE_COULDNT_CONNECT.rawValue, isEstablished: isEstablished, detail: "")
        }
        #expect(
            texts == [
                "the gateway closes the connection or refused the stream", "no connection",
            ])
    }
}

@Suite struct PushQueueTests {
    private func push(
        _ ticket: UInt64, _ container: String = "iCloud.a", _ type: PushType = .alert
    ) throws -> WaitingPush {
        WaitingPush(request: try .sample(ticket: ticket, container: container, pushType: type))
    }

    private func drain(_ queue: inout PushQueue) -> [UInt64] {
        queue.removeAll().map(\.request.ticket)
    }

    @Test func `containers take turns`() throws {
        var queue = PushQueue()
        for ticket in 1...4 as ClosedRange<UInt64> { queue.append(try push(ticket, "iCloud.a")) }
        queue.append(try push(11, "iCloud.b"))
        queue.append(try push(21, "iCloud.c"))
        #expect(queue.count == 6)
        let order = drain(&queue)
        #expect(order == [1, 11, 21, 2, 3, 4])
        #expect(queue.isEmpty)
    }

    @Test func `visible pushes go before background ones`() throws {
        var queue = PushQueue()
        queue.append(try push(1, "iCloud.a", .background))
        queue.append(try push(2, "iCloud.b", .alert))
        let order = drain(&queue)
        #expect(order == [2, 1])
    }

    @Test func `background pushes are not starved`() throws {
        var queue = PushQueue()
        for ticket in 1...40 as ClosedRange<UInt64> { queue.append(try push(ticket)) }
        for ticket in 101...102 as ClosedRange<UInt64> {
            queue.append(try push(ticket, "iCloud.a", .background))
        }
        let order = drain(&queue)
        #expect(order.firstIndex(of: 101) == PushQueue.visibleRun)
        #expect(order.firstIndex(of: 102) == 2 * PushQueue.visibleRun + 1)
    }

    @Test func `a held container keeps its place, and the others go on`() throws {
        var queue = PushQueue()
        for ticket in 1...3 as ClosedRange<UInt64> { queue.append(try push(ticket, "iCloud.a")) }
        queue.append(try push(4, "iCloud.a", .background))
        queue.append(try push(11, "iCloud.b"))
        queue.append(try push(12, "iCloud.b", .background))
        let held = try push(1, "iCloud.a").request.container
        var order: [UInt64] = []
        while let next = queue.popFirst(unless: { $0 == held }) {
            order.append(next.request.ticket)
        }
        #expect(order == [11, 12])
        #expect((queue.count, queue.isEmpty, queue.isReady) == (4, false, false))
        // A new push of the held container waits behind the others.
        queue.append(try push(5, "iCloud.a"))
        #expect(!queue.isReady)
        queue.release(held)
        #expect(queue.isReady)
        #expect(drain(&queue) == [1, 2, 3, 5, 4])
    }

    @Test func `held requests are drained with the rest`() throws {
        var queue = PushQueue()
        for ticket in 1...3 as ClosedRange<UInt64> { queue.append(try push(ticket, "iCloud.a")) }
        queue.append(try push(11, "iCloud.b"))
        #expect(queue.popFirst(unless: { _ in true }) == nil)
        #expect(queue.remove(try push(1, "iCloud.b").request.container).count == 1)
        #expect(drain(&queue) == [1, 2, 3])
        #expect(queue.isEmpty)
    }

    @Test func `a container's requests can be taken out`() throws {
        var queue = PushQueue()
        for ticket in 1...3 as ClosedRange<UInt64> { queue.append(try push(ticket, "iCloud.a")) }
        queue.append(try push(4, "iCloud.a", .background))
        queue.append(try push(11, "iCloud.b"))
        let key = try push(1, "iCloud.a").request.container
        let taken = queue.remove(key).map(\.request.ticket)
        #expect(taken == [1, 2, 3, 4])
        #expect(queue.count == 1)
        let none = queue.remove(key)
        #expect(none.isEmpty)
        queue.append(try push(5, "iCloud.a"))
        let order = drain(&queue)
        #expect(order == [11, 5])
    }

    @Test func `an unwritten request that comes back goes first`() throws {
        var queue = PushQueue()
        queue.append(try push(1))
        queue.append(try push(2))
        let first = queue.popFirst()
        queue.prepend(try #require(first))
        let order = drain(&queue)
        #expect(order == [1, 2])
    }
}
