import FoundationEssentials
package import NIOCore

/// The address of whoever is at the other end, as 128 bits: an IPv4 address stands as IPv6 maps it
/// (RFC 4291 §2.5.5.2), so that a listener for both sees one client once.
package struct ClientAddress: Sendable, Hashable, CustomStringConvertible {
    /// The first eight bytes.
    let high: UInt64
    /// The last eight.
    let low: UInt64

    private static let mapped: UInt64 = 0xFFFF_0000_0000

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The address of a socket; `nil` if it has none, as one in the file system.
    package init?(_ socket: SocketAddress?) {
        switch socket {
        // Where an address stands in what the system has of a socket (ip(7), ipv6(7)).
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

    /// The number that stands in the network's order in a value of the system.
    private static func number(of value: some Any, from start: Int, bytes: Int) -> UInt64 {
        unsafe withUnsafeBytes(of: value) { all in
            unsafe all[start..<start + bytes].reduce(0) { $0 << 8 | UInt64($1) }
        }
    }

    /// Reads an address as people and proxies write it: with a port or without, in brackets or not.
    package init?(text: some StringProtocol) {
        // What a client wrote may be as long as a head, and to go over its letters takes long.
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

    /// The address as people write it; of IPv6 all eight groups, so that equal ones look equal.
    package var description: String {
        if isIPv4 {
            return (0..<4).reversed().map { String(low >> UInt64(8 * $0) & 0xFF) }
                .joined(separator: ".")
        }
        return [high, low].flatMap { half in
            (0..<4).reversed().map { String(half >> UInt64(16 * $0) & 0xFFFF, radix: 16) }
        }.joined(separator: ":")
    }

    /// Whether it is the machine itself.
    package var isLoopback: Bool {
        isIPv4 ? low >> 24 & 0xFF == 127 : high == 0 && low == 1
    }

    /// Whether it is an IPv4 address.
    var isIPv4: Bool { high == 0 && low >> 32 == Self.mapped >> 32 }

    /// Who is counted as one: a single IPv4 address, or the network of an IPv6 one, since every
    /// customer has 2^64 addresses of such a network (RFC 6177).
    package var origin: ClientAddress {
        isIPv4 ? self : ClientAddress(high: high, low: 0)
    }
}

/// The addresses of a network, as `10.0.0.0/8`, or a single one.
package struct AddressRange: Sendable, Hashable {
    private let first: ClientAddress
    /// How many bits of 128 are fixed.
    private let bits: Int

    /// Reads a range; `nil` if it is none.
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

    /// Whether `address` is one of them.
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

/// The proxies whose word about their clients is believed.
package struct TrustedProxies: Sendable, Hashable {
    /// Their addresses.
    package let ranges: [AddressRange]

    /// Believes nobody unless told.
    package init(_ ranges: [AddressRange] = []) {
        self.ranges = ranges
    }

    /// Whether `address` is a proxy's.
    package func contains(_ address: ClientAddress) -> Bool {
        ranges.contains { $0.contains(address) }
    }

    /// Who is at the other end of a connection from `peer` to `own`, for a request that says for
    /// whom it was forwarded.
    package func peer(
        at peer: ClientAddress, reached own: ClientAddress?, forwardedFor: [String]
    ) -> Peer {
        Peer(
            client: client(behind: peer, forwardedFor: forwardedFor), reached: own,
            isTrustedProxy: contains(peer))
    }

    /// Who called: the peer, or the one for whom a proxy called.
    ///
    /// That is the last address that is no proxy's. What stands before it was written by the
    /// client, who may write anything.
    package func client(behind peer: ClientAddress, forwardedFor: [String]) -> ClientAddress {
        guard contains(peer) else { return peer }
        var last = peer
        // By bytes: as a letter, a comma is not one behind a mark that joins what follows it, and
        // a client that wrote such a mark would be taken for the proxy.
        let entries = forwardedFor.flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }
        // More proxies than these stand in no row.
        for entry in entries.suffix(16).reversed() {
            guard let address = ClientAddress(text: Substring(entry)) else { return last }
            last = address
            guard contains(address) else { return address }
        }
        return last
    }
}
