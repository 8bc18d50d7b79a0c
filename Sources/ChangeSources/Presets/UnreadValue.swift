import RelayModel

/// What Debezium writes for a large value that did not change and was not read: a marker in a form
/// that the column's type allows (its `UnchangedToastedPlaceholder`).
enum UnreadValue {
    private static let marker = "__debezium_unavailable_value"
    private static let bytes = Array(marker.utf8)
    private static let numbers = bytes.map { FieldValue.integer(Int64($0)) }

    /// As text, as bytes in base64, and as an `hstore` that is written as JSON.
    private static let texts: Set<String> = [
        marker, Base64.encode(bytes), "{\"\(marker)\":\"\(marker)\"}",
    ]

    /// The marker's name-based UUID, as the one element of a list.
    private static let uuid = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"

    /// A geometry and a geography that are nowhere, as well-known binary in base64.
    private static let shapes: Set<String> = [
        "AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==", "AQEAACDmEAAADCHn/f9/ZkAYQs77/39WQA==",
    ]

    /// Whether `value` stands for one that was not read.
    static func isMeant(by value: FieldValue) -> Bool {
        switch value {
        case .string(let text): texts.contains(text)
        case .bytes(let found): found == bytes
        case .list(let elements):
            switch elements.count {
            case 1: elements[0] == .string(uuid) || isMeant(by: elements[0])
            // Lists of numbers and of dates have a byte in each element.
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
