import RelayModel

/// The entry point of libFuzzer: the first byte decides into which chunks the rest is cut.
///
/// However the bytes of a connection are cut, the same messages come out, the same violation ends
/// the connection, and the bytes that wait for the rest of their frame are bounded. A text message
/// is also read as a live frame, and must print as it was read.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 1, count < 65_536 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let most = 1024
    let whole = heard(bytes.dropFirst(), at: count, most: most)
    let pieces = heard(bytes.dropFirst(), at: Int(bytes[0]) % 13 + 1, most: most)
    precondition(whole.events == pieces.events, "\(whole) \(pieces)")
    precondition(whole.violation == pieces.violation, "\(whole) \(pieces)")
    for case .text(let text) in whole.events { judge(text) }
    return 0
}

private struct Heard {
    var events: [WebSocketReader.Event] = []
    var violation: WebSocketReader.Violation?
}

private func heard(_ bytes: ArraySlice<UInt8>, at size: Int, most: Int) -> Heard {
    var reader = WebSocketReader(most: most)
    var heard = Heard()
    var rest = bytes
    while !rest.isEmpty, heard.violation == nil {
        let piece = Array(rest.prefix(size))
        rest = rest.dropFirst(size)
        do throws(WebSocketReader.Violation) {
            try reader.read(piece) { event in
                heard.events.append(event)
                return true
            }
        } catch {
            heard.violation = error
        }
        // The bound is a whole message, and another frame with its head.
        precondition(heard.violation != nil || reader.pending <= 2 * most + 14)
    }
    return heard
}

private func judge(_ text: [UInt8]) {
    guard String(validating: text, as: UTF8.self) != nil else {
        preconditionFailure("a text is no UTF-8")
    }
    guard let json = try? JSONValue(parsing: text) else { return }
    do {
        let again = try JSONValue(parsing: json.utf8)
        precondition(again.utf8 == json.utf8, "\(json) \(again)")
    } catch {
        preconditionFailure("\(json): \(error)")
    }
}
