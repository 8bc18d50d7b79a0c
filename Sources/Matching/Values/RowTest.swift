/// What a row asks of its field.
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
    /// The field is a collection with the constant, or a text with it inside.
    case has
    /// The field is a collection with the constant (`ANY field == constant`).
    case anyEqual
    /// The field's text fits the pattern of `*` and `?`.
    case like
    /// What rows cannot judge: the reference evaluator does.
    case reference
}
