import FoundationEssentials
package import NIOCore

/// The address of a client, as 128 bits.
///
/// An IPv4 address is stored as IPv6 maps it (RFC 4291 §2.5.5.2), so that a listener for both sees
/// one client as one.
package struct ClientAddress: Sendable, Hashable, CustomStringConvertible {
    /// The first eight bytes.
    let high: UInt64
    /// The last eight bytes.
    let low: UInt64

    private static let mapped: UInt64 = 0xFFFF_0000_0000

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Creates the address of a socket; `nil` if it has none, such as a socket in the file system.
    package init?(_ socket: SocketAddress?) {
        switch socket {
        // The offsets of an address in the system's socket structures (ip(7), ipv6(7)).
        case .v4(let address):
            self.init(
                high: 0, low: Self.mapped | Self.number(of: address.address, from: 4, bytes: 4))
        case .v6(let address):
            self.init(
                high: Self.number(of: address.address, from: 8, bytes: 8),
                low: Self.number(of: address.address, from: 16, bytes: 8))
        case .unixDomainSocket, nil: return nil
        }
    }

    /// Reads a big-endian number from the bytes of a system structure.
    private static func number(of value: some Any, from start: Int, bytes: Int) -> UInt64 {
        unsafe withUnsafeBytes(of: value) { all in
            unsafe all[start..<start + bytes].reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    /// Parses an address as people and proxies write it: with or without a port or brackets.
    package init?(text: some StringProtocol) {
        // A client's text may be as long as a request's head, and scanning its characters would
        // take long.
        guard text.utf8.count <= 256 else { return nil }
        let trimmed = text.drop { $0 == " " || $0 == "\t" }
        var plain = String(trimmed.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
        if plain.hasPrefix("["), let end = plain.firstIndex(of: "]") {
            plain = String(plain[plain.index(after: plain.startIndex)..<end])
        } else if plain.utf8.count(where: { $0 == UInt8(ascii: ":") }) == 1 {
            plain = String(plain.prefix { $0 != ":" })
        }
        guard plain.utf8.count <= 45, let socket = try? SocketAddress(ipAddress: plain, port: 0)
        else { return nil }
        self.init(socket)
    }

    /// The address in its usual notation; IPv6 addresses have all eight groups, so that equal ones
    /// look equal.
    package var description: String {
        if isIPv4 {
            return (0..<4).reversed().map { String(low >> UInt64(8 * $0) & 0xFF) }
                .joined(separator: ".")
        }
        return [high, low].flatMap { half in
            (0..<4).reversed().map { String(half >> UInt64(16 * $0) & 0xFFFF, radix: 16) }
        }.joined(separator: ":")
    }

    /// Whether it is a loopback address.
    package var isLoopback: Bool {
        isIPv4 ? low >> 24 & 0xFF == 127 : high == 0 && low == 1
    }

    /// Whether it is an IPv4 address.
    var isIPv4: Bool { high == 0 && low >> 32 == Self.mapped >> 32 }

    /// The address under which a client is counted: one IPv4 address, or a /64 network of IPv6.
    ///
    /// Every customer has 2^64 addresses of such a network (RFC 6177).
    package var origin: ClientAddress {
        isIPv4 ? self : ClientAddress(high: high, low: 0)
    }
}

/// The addresses of a network, such as `10.0.0.0/8`, or a single one.
package struct AddressRange: Sendable, Hashable {
    private let first: ClientAddress
    /// The number of fixed bits of 128.
    private let bits: Int

    /// Parses a range; `nil` if it is not valid.
    package init?(text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let address = ClientAddress(text: parts[0]) else {
            return nil
        }
        let most = address.isIPv4 ? 32 : 128
        guard parts.count == 1 || Int(parts[1]).map({ (0...most).contains($0) }) == true
        else { return nil }
        let given = parts.count == 2 ? Int(parts[1]) ?? most : most
        bits = address.isIPv4 ? 96 + given : given
        first = Self.masked(address, bits: bits)
    }

    /// Returns whether the range contains `address`.
    package func contains(_ address: ClientAddress) -> Bool {
        Self.masked(address, bits: bits) == first
    }

    private static func masked(_ address: ClientAddress, bits: Int) -> ClientAddress {
        func mask(_ fixed: Int) -> UInt64 {
            fixed <= 0 ? 0 : fixed >= 64 ? .max : ~(UInt64.max >> UInt64(fixed))
        }
        return ClientAddress(
            high: address.high & mask(bits), low: address.low & mask(bits - 64))
    }
}

/// The proxies that may say for which client they forward a request.
package struct TrustedProxies: Sendable, Hashable {
    /// Their addresses.
    package let ranges: [AddressRange]

    /// Creates a list of trusted proxies, which is empty by default.
    package init(_ ranges: [AddressRange] = []) {
        self.ranges = ranges
    }

    /// Returns whether `address` is one of a trusted proxy.
    package func contains(_ address: ClientAddress) -> Bool {
        ranges.contains { $0.contains(address) }
    }

    /// Returns the other end of a connection from `peer` to `own`.
    ///
    /// `forwardedFor` has the values of the request's `X-Forwarded-For` fields.
    package func peer(
        at peer: ClientAddress, reached own: ClientAddress?, forwardedFor: [String]
    ) -> Peer {
        Peer(
            client: client(behind: peer, forwardedFor: forwardedFor), reached: own,
            isTrustedProxy: contains(peer))
    }

    /// Returns the address of the client: that of the peer, or the one for which a trusted proxy
    /// forwards.
    ///
    /// That is the last address that is not a trusted proxy's. The client itself can write any
    /// addresses before it.
    package func client(behind peer: ClientAddress, forwardedFor: [String]) -> ClientAddress {
        guard contains(peer) else { return peer }
        var last = peer
        // Split by bytes: a comma after which a joining mark follows is another `Character`. With
        // such a mark, a client could pass for the proxy.
        let entries = forwardedFor.flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }
        // No real chain has more proxies than this.
        for entry in entries.suffix(16).reversed() {
            guard let address = ClientAddress(text: Substring(entry)) else { return last }
            last = address
            guard contains(address) else { return address }
        }
        return last
    }
}
