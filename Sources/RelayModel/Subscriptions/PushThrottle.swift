/// The most pushes to a device in a span of time; further ones are told together.
public struct PushThrottle: Sendable, Hashable {
    /// The number of pushes.
    public var pushes: Int
    /// The length of the span, in seconds.
    public var seconds: Int64

    private static let bounds = (pushes: 1...100 as ClosedRange<Int64>, seconds: spans)
    /// The range of spans for throttles and digests, in seconds, up to a week.
    static let spans: ClosedRange<Int64> = 1...604_800

    /// Reads the wire form.
    ///
    /// - Throws: ``JSONContractError`` at the first invalid member.
    public init(json: JSONValue, path: String) throws(JSONContractError) {
        let reader = try JSONReader(json, path: path)
        try reader.allowOnly(["pushes", "seconds"])
        pushes = Int(try reader.number("pushes", in: Self.bounds.pushes))
        seconds = try reader.number("seconds", in: Self.bounds.seconds)
    }

    /// The wire form.
    public var json: JSONValue {
        ["pushes": .integer(Int64(pushes)), "seconds": .integer(seconds)]
    }
}

extension JSONReader {
    /// Reads a required integer in `range`.
    func number(
        _ name: String, in range: ClosedRange<Int64>
    ) throws(JSONContractError) -> Int64 {
        let number = try require(name, try integer(name))
        guard range.contains(number) else {
            throw failure(
                name, "must be \(range.lowerBound) to \(range.upperBound), found \(number)")
        }
        return number
    }
}
