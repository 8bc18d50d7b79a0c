public import RelayModel

extension RecordPredicate {
    /// One side of a comparison, or a part of it, that has a value.
    public indirect enum Expression: Sendable, Hashable {
        /// A value from the text or from an argument. A list of constants is one constant.
        case constant(FieldValue)
        /// A path into the record. The empty path is the record itself (`SELF`).
        case path(RecordPath)
        /// A variable, without its `$`.
        case variable(String)
        /// A path into a value other than the record: `$item.price`, `(a UNION b)[0]`.
        case member(of: Expression, RecordPath)
        /// A list with at least one element that is not a constant.
        case list([Expression])
        /// An arithmetic, bitwise or set operation.
        case arithmetic(ArithmeticOperator, Expression, Expression)
        /// `-x`.
        case negative(Expression)
        /// `~x`.
        case complement(Expression)
        /// A call of a built-in function.
        case call(Function, [Expression])
        /// `CAST(x, "type")` of an expression that is not a constant.
        case cast(Expression, CastType)
        /// `TERNARY(condition, a, b)`.
        case conditional(Node, Expression, Expression)
        /// `SUBQUERY(list, $variable, condition)`: the elements for which the condition holds.
        case subquery(Expression, variable: String, Node)
        /// `$variable := value`: has the value, and assigns it to the variable.
        case assignment(String, Expression)
        /// `ANYKEY`: the values of all members of the record.
        case anyKey

        /// The record itself.
        public static let record = Expression.path(RecordPath([]))

        /// Returns a path of plain member names: `.field("addr", "city")`.
        public static func field(_ names: String...) -> Expression {
            .path(RecordPath(names.map(RecordPath.Component.member)))
        }
    }

    /// A binary operator.
    ///
    /// The raw value is the canonical spelling.
    public enum ArithmeticOperator: String, Sendable, Hashable, CaseIterable {
        /// The sum.
        case add = "+"
        /// The difference.
        case subtract = "-"
        /// The product.
        case multiply = "*"
        /// The quotient. The quotient of two integers is truncated.
        case divide = "/"
        /// The left side raised to the power of the right side.
        case power = "**"
        /// The bits that are set in both sides.
        case bitAnd = "&"
        /// The bits that are set in either side.
        case bitOr = "|"
        /// The bits that are set in exactly one side.
        case bitXor = "^"
        /// The bits of the left side, shifted left.
        case shiftLeft = "<<"
        /// The bits of the left side, shifted right.
        case shiftRight = ">>"
        /// The elements that are in either side.
        case union = "UNION"
        /// The elements that are in both sides.
        case intersect = "INTERSECT"
        /// The elements that are only in the left side.
        case minus = "MINUS"
    }

    /// The target type of a cast.
    ///
    /// The raw value is the canonical spelling.
    ///
    /// ``date``, ``number`` and ``string`` are Apple's. The others express constants for which
    /// NSPredicate has no literal, such as `CAST("aGk=", "NSData")`.
    public enum CastType: String, Sendable, Hashable, CaseIterable {
        /// Converts a number of seconds since 2001-01-01 to a date.
        case date = "NSDate"
        /// Converts a date to seconds since 2001-01-01, and a text to the number that it contains.
        case number = "NSNumber"
        /// Converts any value to text.
        case string = "NSString"
        /// Converts Base64 text to binary data.
        case data = "NSData"
        /// Converts text to a UUID.
        case uuid = "NSUUID"
        /// Converts a list to a set.
        case set = "NSSet"
        /// Converts a list of key, value, key, value … to a dictionary.
        case dictionary = "NSDictionary"
        /// Converts `{latitude, longitude}` to a location.
        case location = "CLLocation"
        /// Converts a record name, `{name, zone}` or `{name, zone, owner}` to a reference.
        case reference = "CKReference"
        /// Converts 24 hexadecimal digits to an object ID.
        case objectID = "ObjectId"
    }
}

extension RecordPredicate {
    /// A built-in function.
    ///
    /// The raw value is the canonical spelling of its name.
    ///
    /// Functions such as `add:to:` are not included. They are parsed as the equivalent
    /// ``ArithmeticOperator``.
    public enum Function: String, Sendable, Hashable, CaseIterable {
        /// The sum of the arguments, or of one list.
        case sum = "sum:"
        /// The number of arguments, or of elements of one list.
        case count = "count:"
        /// The least of the arguments, or of the elements of one list.
        case minimum = "min:"
        /// The greatest of the arguments, or of the elements of one list.
        case maximum = "max:"
        /// The mean of the arguments, or of the elements of one list.
        case average = "average:"
        /// The median of the arguments, or of the elements of one list.
        case median = "median:"
        /// The most frequent arguments, or elements of one list, as a list.
        case mode = "mode:"
        /// The population standard deviation of the arguments, or of the elements of one list.
        case standardDeviation = "stddev:"
        /// The remainder of a division.
        case modulus = "modulus:by:"
        /// The square root.
        case squareRoot = "sqrt:"
        /// The logarithm to base 10.
        case logarithm = "log:"
        /// The natural logarithm.
        case naturalLogarithm = "ln:"
        /// e raised to the argument.
        case exponential = "exp:"
        /// The argument, rounded down to an integer.
        case floor = "floor:"
        /// The argument, rounded up to an integer.
        case ceiling = "ceiling:"
        /// The absolute value.
        case absolute = "abs:"
        /// The argument without its fraction.
        case truncate = "trunc:"
        /// The time of the evaluation, which is the same in the whole predicate.
        case now = "now"
        /// The text in upper case.
        case uppercase = "uppercase:"
        /// The text in lower case.
        case lowercase = "lowercase:"
        /// The argument itself.
        case noIndex = "noindex:"
        /// The number of UTF-16 units in a text.
        case length = "length:"
        /// The distance between two locations, in metres.
        case distance = "distanceToLocation:fromLocation:"
        /// The words of a text, as a list.
        case tokenize = "tokenize:using:"
        /// A box with two corners (RQL).
        case geoBox = "geobox:"
        /// A circle with a centre and a radius in radians (RQL).
        case geoCircle = "geocircle:"
        /// A polygon with holes (RQL).
        case geoPolygon = "geopolygon:"
    }
}
