import RelayModel

/// Debezium's marker for a large, unchanged value that it did not read (its
/// `UnchangedToastedPlaceholder`).
///
/// The marker's form depends on the column's type.
enum UnreadValue {
    private static let marker = "__debezium_unavailable_value"
    private static let bytes = Array(marker.utf8)
    private static let numbers = bytes.map { FieldValue.integer(Int64($0)) }

    /// The marker as text, as bytes in base64, and as an `hstore` written as JSON.
    private static let texts: Set<String> = [
        marker, Base64.encode(bytes), "{\"\(marker)\":\"\(marker)\"}",
    ]

    /// The name-based UUID of the marker, which appears as the only element of a list.
    private static let uuid = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"

    /// The markers of a geometry and a geography, as well-known binary in base64.
    private static let shapes: Set<String> = [
        "AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==", "AQEAACDmEAAADCHn/f9/ZkAYQs77/39WQA==",
    ]

    /// Returns whether `value` is a marker for a value that was not read.
    static func isMeant(by value: FieldValue) -> Bool {
        switch value {
        case .string(let text): texts.contains(text)
        case .bytes(let found): found == bytes
        case .list(let elements):
            switch elements.count {
            case 1: elements[0] == .string(uuid) || isMeant(by: elements[0])
            // In lists of numbers or dates, each element is a byte of the marker.
            case numbers.count: elements == numbers
            default: false
            }
        case .map(let members):
            if case .string(let shape)? = members["wkb"] {
                shapes.contains(shape)
            } else if case .bytes(let shape)? = members["wkb"] {
                shapes.contains(Base64.encode(shape))
            } else {
                members == [marker: .string(marker)]
            }
        default: false
        }
    }
}
