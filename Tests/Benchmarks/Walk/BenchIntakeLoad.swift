import Foundation
import Synchronization

/// Clients that post the next change as soon as the last one is answered.
///
/// Each has a thread and a socket of its own, and does as little work as possible, so that the
/// measurement is of the relay.
struct IntakeLoad: Sendable {
    let port: Int
    let batch: Int
    let bytes: Int
    let seconds: Double

    func run(connections: Int) async -> IntakeFigures {
        let started = ContinuousClock.now
        let end = started.advanced(by: .seconds(seconds))
        var total = await withTaskGroup(of: IntakeFigures.self) { group in
            for number in 0..<connections {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        let thread = Thread {
                            continuation.resume(returning: client(number, until: end))
                        }
                        thread.stackSize = 512 * 1024
                        thread.start()
                    }
                }
            }
            return await group.reduce(into: IntakeFigures()) { total, part in
                total.changes += part.changes
                total.refused += part.refused
                total.delays += part.delays
            }
        }
        total.seconds = (ContinuousClock.now - started) / .seconds(1)
        return total
    }

    private func client(_ number: Int, until end: ContinuousClock.Instant) -> IntakeFigures {
        var figures = IntakeFigures()
        guard let socket = IntakeSocket(port: port) else { return figures }
        let filling = String(repeating: "x", count: bytes - 130)
        var count = 0
        while ContinuousClock.now < end {
            let start = ContinuousClock.now
            let status = socket.exchange(request("\(number)-\(count)", filling))
            count += 1
            if status == 200 {
                figures.changes += batch
                figures.delays.append(Int64((ContinuousClock.now - start) / .nanoseconds(1)))
            } else {
                figures.refused += 1
                if status == 0 { return figures }
            }
        }
        return figures
    }

    private func request(_ name: String, _ filling: String) -> [UInt8] {
        var body = batch > 1 ? "[" : ""
        body.reserveCapacity(batch * bytes)
        for index in 0..<batch {
            if index > 0 { body += "," }
            body +=
                #"{"operation":"update","recordType":"Artwork","recordName":"\#(name)-\#(index)","#
            body += #""after":{"artist":"artist-1","year":1907,"title":"\#(filling)"}}"#
        }
        if batch > 1 { body += "]" }
        let head =
            "POST /changes/1/\(IntakeTarget.container)/development/\(IntakeTarget.source) HTTP/1.1\r\n"
            + "Host: localhost\r\nContent-Type: application/json\r\nwebhook-id: \(name)\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n"
        return Array((head + body).utf8)
    }
}

/// A blocking connection that sends requests one after the other.
private final class IntakeSocket {
    private let descriptor: Int32
    private var buffer = [UInt8](repeating: 0, count: 256 * 1024)

    init?(port: Int) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, size)
            }
        }
        guard connected == 0 else { return nil }
        var on: Int32 = 1
        setsockopt(
            descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    deinit { close(descriptor) }

    /// Sends a request and reads its answer; returns the status, 0 if the connection is gone.
    func exchange(_ request: [UInt8]) -> Int {
        var sent = 0
        while sent < request.count {
            let count = request.withUnsafeBytes { bytes in
                send(
                    descriptor, bytes.baseAddress?.advanced(by: sent), request.count - sent,
                    Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return 0 }
            sent += count
        }
        var received = 0
        while received < buffer.count {
            let count = buffer.withUnsafeMutableBytes { bytes in
                recv(
                    descriptor, bytes.baseAddress?.advanced(by: received), bytes.count - received, 0
                )
            }
            guard count > 0 else { return 0 }
            received += count
            if let status = Self.status(of: buffer[..<received]) { return status }
        }
        return 0
    }

    /// Returns the status of an answer, once the whole answer has come.
    private static func status(of bytes: ArraySlice<UInt8>) -> Int? {
        guard bytes.count > 12, let head = place(after: "\r\n\r\n", in: bytes) else { return nil }
        let length = place(after: "\r\ncontent-length: ", in: bytes[..<head])
            .map { number(bytes[$0...]) }
        guard let length, bytes.count >= head + length else { return nil }
        return number(bytes[9..<12])
    }

    /// Returns the index after the first occurrence of `text`, ignoring case; `text` must be
    /// lowercase.
    private static func place(after text: StaticString, in bytes: ArraySlice<UInt8>) -> Int? {
        let wanted = (0..<text.utf8CodeUnitCount).map { text.utf8Start[$0] }
        guard bytes.count >= wanted.count else { return nil }
        return (bytes.startIndex...bytes.endIndex - wanted.count).first { start in
            wanted.indices.allSatisfy { index in
                let byte = bytes[start + index]
                return (0x41...0x5A ~= byte ? byte | 0x20 : byte) == wanted[index]
            }
        }.map { $0 + wanted.count }
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int {
        digits.prefix { 0x30...0x39 ~= $0 }.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }
}
