/// The name of what an update of MongoDB's changed: a field, or a part of one behind a dot.
///
/// Whoever writes documents may name a member anything; as letters a dot and a mark behind it are
/// one, and that is no dot.
struct DottedName {
    /// The field.
    let field: String
    /// Whether a part of the field was changed, so that nothing whole is known of it.
    let isPart: Bool

    /// Takes a name apart.
    init(_ name: String) {
        let dot = name.utf8.firstIndex(of: UInt8(ascii: "."))
        isPart = dot != nil
        field = dot.map { String(name[..<$0]) } ?? name
    }
}
