/// The test that a row applies to its field.
enum RowTest: UInt8 {
    case equal
    case notEqual
    case less
    case lessOrEqual
    case greater
    case greaterOrEqual
    /// The field equals one of the constants.
    case member
    /// The field's text begins with the constant.
    case begins
    /// The field's text ends with the constant.
    case ends
    /// The field is a collection that contains the constant, or a text that contains it.
    case has
    /// The field is a collection that contains the constant (`ANY field == constant`).
    case anyEqual
    /// The field's text matches the pattern of `*` and `?`.
    case like
    /// A test that only the reference evaluator can do.
    case reference
}
