import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTPTypes
import Synchronization

/// The `100 Continue` for which a client waits before it sends its body (RFC 9110, §10.1.1).
///
/// It is sent when the body is about to be read. A request that is refused before that is answered
/// at once. Its connection is closed then, because it is unknown whether the body still comes.
final class ContinueSignal: Sendable {
    private let channel: (any Channel)?
    private let isOwed: Mutex<Bool>

    /// Creates the signal of a request that came over `channel`; `nil` means a request made in this
    /// process.
    init(of request: Request, on channel: (any Channel)?) {
        self.channel = channel
        let expected = request.headers[.expect]?.lowercased() == "100-continue"
        isOwed = Mutex(expected && channel != nil)
    }

    /// Whether the client still waits for it.
    var isAwaited: Bool { isOwed.withLock { $0 } }

    /// Sends the signal, once.
    func send() {
        let isDue = isOwed.withLock { owed in
            defer { owed = false }
            return owed
        }
        guard isDue else { return }
        channel?.writeAndFlush(
            HTTPResponsePart.head(HTTPResponse(status: .continue)), promise: nil)
    }
}
