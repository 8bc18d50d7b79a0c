/// The name of something that a MongoDB update changed: a field, or a part of a field after a dot.
///
/// Names of members are arbitrary. As characters, a dot and a following combining mark would be
/// one, so the name is split by bytes.
struct DottedName {
    /// The name of the field.
    let field: String
    /// Whether only a part of the field was changed, so that its whole value is unknown.
    let isPart: Bool

    /// Splits a name.
    init(_ name: String) {
        let dot = name.utf8.firstIndex(of: UInt8(ascii: "."))
        isPart = dot != nil
        field = dot.map { String(name[..<$0]) } ?? name
    }
}
