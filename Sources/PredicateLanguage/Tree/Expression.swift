public import RelayModel

extension RecordPredicate {
    /// One side of a comparison, or a part of it: something that has a value.
    public indirect enum Expression: Sendable, Hashable {
        /// A value that was written down or handed in; lists of constants are one constant.
        case constant(FieldValue)
        /// A path into the record; the empty path is the record itself (`SELF`).
        case path(RecordPath)
        /// A variable, without its `$`.
        case variable(String)
        /// A path into something else than the record: `$item.price`, `(a UNION b)[0]`.
        case member(of: Expression, RecordPath)
        /// A list of which one element at least is not a constant.
        case list([Expression])
        /// Arithmetic, bits, or sets.
        case arithmetic(ArithmeticOperator, Expression, Expression)
        /// `-x`.
        case negative(Expression)
        /// `~x`.
        case complement(Expression)
        /// A built-in function.
        case call(Function, [Expression])
        /// `CAST(x, "type")` of what is not a constant.
        case cast(Expression, CastType)
        /// `TERNARY(condition, a, b)`.
        case conditional(Node, Expression, Expression)
        /// `SUBQUERY(list, $variable, condition)`: the elements for which the condition holds.
        case subquery(Expression, variable: String, Node)
        /// `$variable := value`: the value, which the variable has from then on.
        case assignment(String, Expression)
        /// `ANYKEY`: the values of all members of the record.
        case anyKey

        /// The record itself.
        public static let record = Expression.path(RecordPath([]))

        /// A path of plain member names: `.field("addr", "city")`.
        public static func field(_ names: String...) -> Expression {
            .path(RecordPath(names.map(RecordPath.Component.member)))
        }
    }

    /// An operator between two expressions; the raw value is the canonical spelling.
    public enum ArithmeticOperator: String, Sendable, Hashable, CaseIterable {
        /// Sum.
        case add = "+"
        /// Difference.
        case subtract = "-"
        /// Product.
        case multiply = "*"
        /// Quotient; of two integers it is truncated.
        case divide = "/"
        /// Power.
        case power = "**"
        /// Bits in both.
        case bitAnd = "&"
        /// Bits in either.
        case bitOr = "|"
        /// Bits in one of the two.
        case bitXor = "^"
        /// Bits moved up.
        case shiftLeft = "<<"
        /// Bits moved down.
        case shiftRight = ">>"
        /// Elements of either.
        case union = "UNION"
        /// Elements of both.
        case intersect = "INTERSECT"
        /// Elements of the left one only.
        case minus = "MINUS"
    }

    /// A type that a value can be cast to; the raw value is the canonical spelling.
    ///
    /// ``date``, ``number`` and ``string`` are Apple's. The others write constants for which
    /// NSPredicate has no literal, such as `CAST("aGk=", "NSData")`.
    public enum CastType: String, Sendable, Hashable, CaseIterable {
        /// A number of seconds since 2001-01-01 becomes a date.
        case date = "NSDate"
        /// A date becomes seconds since 2001-01-01, a text the number it shows.
        case number = "NSNumber"
        /// Anything becomes text.
        case string = "NSString"
        /// Base64 becomes data.
        case data = "NSData"
        /// Text becomes a UUID.
        case uuid = "NSUUID"
        /// A list becomes a set.
        case set = "NSSet"
        /// A list of key, value, key, value … becomes a dictionary.
        case dictionary = "NSDictionary"
        /// `{latitude, longitude}` becomes a place.
        case location = "CLLocation"
        /// A record name, or `{name, zone}` or `{name, zone, owner}`, becomes a reference.
        case reference = "CKReference"
        /// 24 hexadecimal digits become an object ID.
        case objectID = "ObjectId"
    }
}

extension RecordPredicate {
    /// A built-in function; the raw value is the canonical spelling of its name.
    ///
    /// `add:to:` and the like are no functions here but the ``ArithmeticOperator`` that they mean.
    public enum Function: String, Sendable, Hashable, CaseIterable {
        /// The sum of the arguments, or of one list.
        case sum = "sum:"
        /// The number of arguments, or of elements of one list.
        case count = "count:"
        /// The least.
        case minimum = "min:"
        /// The greatest.
        case maximum = "max:"
        /// The mean.
        case average = "average:"
        /// The middle one.
        case median = "median:"
        /// The most frequent ones, as a list.
        case mode = "mode:"
        /// The standard deviation of a population.
        case standardDeviation = "stddev:"
        /// The remainder.
        case modulus = "modulus:by:"
        /// The square root.
        case squareRoot = "sqrt:"
        /// The logarithm to base 10.
        case logarithm = "log:"
        /// The natural logarithm.
        case naturalLogarithm = "ln:"
        /// e raised to the argument.
        case exponential = "exp:"
        /// The next integer below.
        case floor = "floor:"
        /// The next integer above.
        case ceiling = "ceiling:"
        /// Without its sign.
        case absolute = "abs:"
        /// Without its fraction.
        case truncate = "trunc:"
        /// The moment of the evaluation, one for the whole predicate.
        case now = "now"
        /// In upper case.
        case uppercase = "uppercase:"
        /// In lower case.
        case lowercase = "lowercase:"
        /// The argument itself.
        case noIndex = "noindex:"
        /// UTF-16 units of a text.
        case length = "length:"
        /// Metres between two places.
        case distance = "distanceToLocation:fromLocation:"
        /// The words of a text, as a list.
        case tokenize = "tokenize:using:"
        /// A box of two corners (RQL).
        case geoBox = "geobox:"
        /// A circle of a centre and a radius in radians (RQL).
        case geoCircle = "geocircle:"
        /// A polygon with holes (RQL).
        case geoPolygon = "geopolygon:"
    }
}
