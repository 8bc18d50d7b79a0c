import NIOCore
import Testing

@testable import RelayServer

/// The decisions about connections: which are accepted, how fast they must be, and whose address
/// they have.
@Suite struct ConnectionCountsTests {
    private static func address(_ text: String) throws -> ClientAddress {
        try #require(ClientAddress(text: text))
    }

    // MARK: Addresses

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1:80"), ("::ffff:10.1.2.3", "10.1.2.3"),
        ("[2001:db8::1]:443", "2001:db8::1"), (" 10.1.2.3 ", "10.1.2.3"),
    ])
    func `spellings of one address are one address`(left: String, right: String) throws {
        #expect(try Self.address(left) == Self.address(right))
    }

    @Test(arguments: ["", "localhost", "10.1.2", "1.2.3.4.5", "unknown", "_hidden", "::g"])
    func `a malformed address is refused`(text: String) {
        #expect(ClientAddress(text: text) == nil)
    }

    @Test func `a text longer than any address is refused without being parsed`() {
        #expect(ClientAddress(text: String(repeating: " ", count: 300) + "10.1.2.3") == nil)
        #expect(ClientAddress(text: String(repeating: " ", count: 200) + "10.1.2.3") != nil)
    }

    @Test func `a socket's address is printed as people write it`() throws {
        for text in ["127.0.0.1", "10.1.2.3", "::1", "2001:db8:1:2:3:4:5:6"] {
            let socket = try SocketAddress(ipAddress: text, port: 80)
            #expect(ClientAddress(socket) == (try Self.address(text)))
        }
        #expect(try Self.address("127.8.9.1").isLoopback)
        #expect(try Self.address("::1").isLoopback)
        #expect(try !Self.address("128.0.0.1").isLoopback)
        #expect(try !Self.address("::2").isLoopback)
    }

    @Test func `the addresses of one IPv6 network count as one`() throws {
        let first = try Self.address("2001:db8:1:2::1").origin
        #expect(try Self.address("2001:db8:1:2:ffff::9").origin == first)
        #expect(try Self.address("2001:db8:1:3::1").origin != first)
        #expect(try Self.address("10.0.0.1").origin != Self.address("10.0.0.2").origin)
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false),
        ("10.1.2.3", "10.1.2.3", true), ("10.1.2.3", "10.1.2.4", false),
        ("2001:db8::/32", "2001:db8:ffff::1", true), ("2001:db8::/32", "2001:db9::1", false),
        ("0.0.0.0/0", "1.2.3.4", true), ("0.0.0.0/0", "2001:db8::1", false),
        ("::/0", "1.2.3.4", true),
    ])
    func `a network contains its addresses`(range: String, address: String, isIn: Bool) throws {
        #expect(try #require(AddressRange(text: range)).contains(Self.address(address)) == isIn)
    }

    @Test(arguments: [
        "10.0.0.0/33", "10.0.0.0/", "/8", "10.0.0.0/8/8", "x/8", "::/129", "1.2.3.4/-1",
    ])
    func `a malformed network is refused`(text: String) {
        #expect(AddressRange(text: text) == nil)
    }

    @Test func `only trusted proxies can name the client that they act for`() throws {
        let proxies = TrustedProxies(
            ["10.0.0.0/8"].compactMap { AddressRange(text: $0) })
        func client(_ peer: String, _ forwarded: String...) throws -> ClientAddress {
            proxies.client(behind: try Self.address(peer), forwardedFor: forwarded)
        }
        #expect(try client("1.1.1.1", "2.2.2.2") == Self.address("1.1.1.1"))
        #expect(try client("10.0.0.1", "2.2.2.2") == Self.address("2.2.2.2"))
        // What the client itself wrote comes before what the proxy appends.
        #expect(try client("10.0.0.1", "9.9.9.9, 2.2.2.2") == Self.address("2.2.2.2"))
        #expect(try client("10.0.0.1", "9.9.9.9, 2.2.2.2, 10.0.0.2") == Self.address("2.2.2.2"))
        #expect(try client("10.0.0.1", "9.9.9.9", "2.2.2.2") == Self.address("2.2.2.2"))
        // U+0600 and the comma that the proxy writes after it are one `Character`.
        for mark in ["\u{600}", "9.9.9.9\u{600}", "9.9.9.9\u{110BD}"] {
            #expect(try client("10.0.0.1", "\(mark), 2.2.2.2") == Self.address("2.2.2.2"))
            #expect(try client("10.0.0.1", mark, "2.2.2.2") == Self.address("2.2.2.2"))
        }
        #expect(try client("10.0.0.1", "2.2.2.2, nonsense") == Self.address("10.0.0.1"))
        #expect(try client("10.0.0.1") == Self.address("10.0.0.1"))
    }

    // MARK: Who may come in

    @Test func `a full listener refuses a few connections with an answer and drops others`() throws
    {
        var book = ConnectionCounts(ConnectionCounts.Bounds(connections: 10, perAddress: 10))
        for number in 0..<10 {
            #expect(book.arrive(from: try Self.address("10.0.0.\(number)")) == .served)
        }
        #expect(book.room == 4)
        for _ in 0..<4 { #expect(book.arrive(from: nil) == .refused(.full)) }
        #expect(!book.takes && book.room == 0)
        #expect(book.arrive(from: nil) == .dropped(.full))
        book.leave(.refused(.full), from: nil, asked: true, at: .zero)
        #expect(book.takes && book.room == 1)
        book.leave(.served, from: try Self.address("10.0.0.3"), asked: true, at: .zero)
        #expect(book.arrive(from: nil) == .served)
    }

    @Test func `one address cannot use all of a listener`() throws {
        var book = ConnectionCounts(ConnectionCounts.Bounds(connections: 10, perAddress: 5))
        let one = try Self.address("10.0.0.1")
        for _ in 0..<5 { #expect(book.arrive(from: one) == .served) }
        for _ in 0..<book.bounds.refusals {
            #expect(!book.waits(from: one, at: .zero))
            #expect(book.arrive(from: one) == .refused(.address))
        }
        // The next connection would be dropped.
        #expect(book.waits(from: one, at: .zero))
        #expect(book.arrive(from: one) == .dropped(.address))
        #expect(!book.waits(from: try Self.address("10.0.0.2"), at: .zero))
        #expect(book.arrive(from: try Self.address("10.0.0.2")) == .served)
        // Connections of a trusted proxy are not counted for its address.
        #expect(book.arrive(from: nil) == .served)
        book.leave(.served, from: one, asked: true, at: .zero)
        #expect(book.arrive(from: one) == .served)
    }

    @Test func `the address with most connections gives way, the longest idle first`() throws {
        let (crowd, one) = (try Self.address("10.0.0.1"), try Self.address("10.0.0.2"))
        var idle = IdleConnections<Int>()
        idle.add(1, from: one, asked: true)
        #expect(idle.next(for: .address, from: crowd) == nil)
        idle.add(2, from: crowd, asked: true)
        idle.add(3, from: crowd, asked: false)
        idle.add(4, from: crowd, asked: false)
        var gone: [Int] = []
        for _ in 0..<4 {
            guard let next = idle.next(for: .full, from: one) else { break }
            idle.remove(next)
            gone.append(next)
        }
        #expect(gone == [3, 4, 1, 2])
        // Within one address, its own connections give way, even if another address has waited
        // longer.
        idle.add(5, from: one, asked: false)
        idle.add(6, from: crowd, asked: true)
        #expect(idle.next(for: .address, from: crowd) == 6)
    }

    @Test func `an address that opens idle connections waits, and others do not`() throws {
        var book = ConnectionCounts(ConnectionCounts.Bounds(connections: 10, perAddress: 10))
        let (one, two) = (try Self.address("10.0.0.1"), try Self.address("10.0.0.2"))
        for _ in 0..<256 {
            #expect(!book.waits(from: one, at: .zero))
            #expect(book.arrive(from: one) == .served)
            book.leave(.served, from: one, asked: false, at: .zero)
        }
        #expect(book.waits(from: one, at: .zero) && !book.waits(from: two, at: .zero))
        // A proxy's connections belong to many clients.
        for _ in 0..<1000 {
            #expect(!book.waits(from: nil, at: .zero))
            #expect(book.arrive(from: nil) == .served)
            book.leave(.served, from: nil, asked: false, at: .zero)
        }
        // Whatever was tried meanwhile, after a second some connections need not wait.
        let later = Duration.seconds(1)
        for _ in 0..<128 {
            #expect(!book.waits(from: one, at: later))
            #expect(book.arrive(from: one) == .served)
            book.leave(.served, from: one, asked: false, at: later)
        }
        #expect(book.waits(from: one, at: later))
    }

    @Test func `waiting connections use places, and the first of too many is closed`() {
        var book = ConnectionCounts(ConnectionCounts.Bounds(connections: 10, perAddress: 10))
        for _ in 0..<5 {
            let isFull = book.hold()
            #expect(!isFull)
        }
        #expect(book.held == book.bounds.held && book.room == 10 - 5 + book.bounds.refusals)
        let isFull = book.hold()
        #expect(isFull && book.held == 5)
        book.release()
        #expect(book.held == 4)
    }

    @Test func `an address that makes requests may connect as often as there is room`() throws {
        var book = ConnectionCounts(ConnectionCounts.Bounds(connections: 10, perAddress: 10))
        let one = try Self.address("10.0.0.1")
        for _ in 0..<1000 {
            #expect(!book.waits(from: one, at: .zero))
            #expect(book.arrive(from: one) == .served)
            book.leave(.served, from: one, asked: true, at: .zero)
        }
        #expect(book.served == 0)
    }

    @Test func `the listeners leave files for the store, the gateway and the operator`() {
        func listener(_ limit: Int) -> Int {
            OpenFiles(limit: limit).connections(wished: 10_000, operators: 32, gateway: 4)
        }
        #expect(listener(1_048_576) == 10_000)
        #expect(listener(1024) == 1024 - 64 - 32 - 16)
        #expect(listener(256) == 144)
        #expect(listener(64) == OpenFiles.least)
    }

    @Test func `too few files for the configured connections are reported`() {
        var settings = ListenerSettings()
        settings.connections = 10_000
        #expect(settings.shortage(OpenFiles(limit: 1_048_576), gateway: 4) == nil)
        #expect(
            settings.shortage(OpenFiles(limit: 1024), gateway: 4)
                == "only 912 client connections are accepted, not the 10000 of http.connections, "
                + "because the process may open only 1024 files: raise the limit (LimitNOFILE of "
                + "the unit, ulimit -Hn)")
    }

    // MARK: How fast

    private static func pace() -> ConnectionPace {
        ConnectionPace(ConnectionPace.Bounds(), at: .zero)
    }

    @Test func `the first head has a deadline from the start of the connection`() {
        var pace = Self.pace()
        #expect(pace.deadline?.moment == .seconds(15))
        for second in 1..<15 {
            pace.hear(at: .seconds(second))
            #expect(pace.deadline?.moment == .seconds(15))
            #expect(pace.deadline?.slowness == .head)
        }
    }

    @Test func `a later head has a deadline from its first byte, and idling has more time`() {
        var pace = Self.pace()
        pace.hear(at: .seconds(1))
        pace.head(at: .seconds(1))
        pace.requestEnded(at: .seconds(1))
        #expect(pace.deadline == nil)
        pace.answer(10, at: .seconds(2))
        pace.answerTaken(at: .seconds(2))
        #expect(pace.deadline?.moment == .seconds(77))
        #expect(pace.deadline?.slowness == .idle)
        pace.hear(at: .seconds(70))
        pace.hear(at: .seconds(80))
        #expect(pace.deadline?.moment == .seconds(85))
        #expect(pace.deadline?.slowness == .head)
    }

    @Test func `a connection of another relay outlasts the time that relay keeps it`() {
        var bounds = ConnectionPace.Bounds()
        bounds.idle = .seconds(1)
        #expect(bounds.ofRelays.idle == .seconds(75))
        bounds.idle = .seconds(3600)
        #expect(bounds.ofRelays.idle == .seconds(3600))
    }

    @Test func `a body may neither stall nor trickle`() {
        var pace = Self.pace()
        pace.head(at: .zero)
        #expect(pace.deadline?.moment == .seconds(30))
        // One byte a second.
        var second = 0
        while let deadline = pace.deadline?.moment, deadline > .seconds(second) {
            second += 1
            pace.body(1, at: .seconds(second))
        }
        #expect(second <= 31)
        // All but the last byte at once.
        pace = Self.pace()
        pace.head(at: .zero)
        pace.body(4_000_000, at: .seconds(1))
        #expect(pace.deadline?.moment == .seconds(31))
        // Twice the required rate, for as long as it takes.
        pace = Self.pace()
        pace.head(at: .zero)
        for second in 1...300 {
            pace.body(16_384, at: .seconds(second))
            #expect((pace.deadline?.moment ?? .zero) > .seconds(second + 20))
        }
    }

    @Test func `a client that does not read its response is disconnected, unlike a held poll`() {
        var pace = Self.pace()
        pace.head(at: .zero)
        pace.requestEnded(at: .zero)
        #expect(pace.deadline == nil)
        pace.answer(10_000_000, at: .seconds(600))
        #expect(pace.deadline?.moment == .seconds(630))
        pace.answerWaits(6_000_000, at: .seconds(601))
        #expect(pace.deadline?.moment == .seconds(631))
        pace.answerWaits(6_000_000, at: .seconds(620))
        #expect(pace.deadline?.moment == .seconds(631))
        #expect(pace.deadline?.slowness == .answer)
    }

    // MARK: The courier's address

    @Test(arguments: [
        ("localhost:8080", true), ("LOCALHOST", true), ("127.0.0.1:1", true), ("[::1]:80", true),
        ("192.168.1.5:8080", true), ("192.168.1.6:8080", false), ("evil.example", false),
        ("localhost.evil.example", false), ("localhost:80@evil.example", false),
        ("127.0.0.1.evil.example", false), ("localhost:99999", false), ("localhost/x", false),
        ("", false), ("localhost\u{0}", false), ("127.0.0.1:", false),
    ])
    func `a host header is only used if it leads to this relay`(
        host: String, isFollowed: Bool
    ) throws {
        let base = CourierBase(configured: nil, own: "http://0.0.0.0:8080", scheme: "http")
        let reached = try Self.address("192.168.1.5")
        let url = base.url(authority: host, reached: reached, forwardedScheme: nil)
        #expect(url == (isFollowed ? "http://\(host)" : "http://0.0.0.0:8080"))
    }

    @Test func `the configured URL takes precedence over every host header`() {
        let base = CourierBase(
            configured: "https://push.example.com", own: "http://x", scheme: "http")
        #expect(
            base.url(authority: "localhost", reached: nil, forwardedScheme: nil)
                == "https://push.example.com")
    }
}
