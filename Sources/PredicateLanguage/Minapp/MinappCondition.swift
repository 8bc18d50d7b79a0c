public import RelayModel

/// A condition as Minapp's clients build it, in its wire form.
///
/// It can use all of Minapp's operators. ``RecordPredicate/init(where:schema:)`` decides which of
/// them a subscription may use.
public struct MinappCondition: Sendable, Hashable {
    /// The condition in its wire form.
    public let json: JSONValue

    /// The relation between a field and a value.
    ///
    /// The raw value is the operator's name in the wire form.
    public enum Relation: String, Sendable, Hashable, CaseIterable {
        /// The field equals the value.
        case equalTo = "$eq"
        /// The field does not equal the value.
        case notEqualTo = "$ne"
        /// The field is less than the value.
        case lessThan = "$lt"
        /// The field is less than or equal to the value.
        case lessThanOrEqualTo = "$lte"
        /// The field is greater than the value.
        case greaterThan = "$gt"
        /// The field is greater than or equal to the value.
        case greaterThanOrEqualTo = "$gte"
    }

    private init(_ field: String, _ name: String, _ value: JSONValue) {
        json = [field: [name: value]]
    }

    private init(_ json: JSONValue) {
        self.json = json
    }

    /// Compares a field with a value.
    ///
    /// A record is given by its ID.
    public static func compare(
        _ field: String, _ relation: Relation, _ value: JSONValue
    ) -> Self {
        Self(field, relation.rawValue, value)
    }

    /// Searches with a regular expression, written `/pattern/flags`.
    ///
    /// Without slashes, the whole text is the pattern.
    public static func matches(_ field: String, _ expression: String) -> Self {
        guard expression.hasPrefix("/"), let end = expression.lastIndex(of: "/"),
            end > expression.startIndex
        else { return Self(field, "$regex", .string(expression)) }
        let pattern = expression[expression.index(after: expression.startIndex)..<end]
        let flags = expression[expression.index(after: end)...]
        var object: JSONObject = ["$regex": .string(String(pattern))]
        if !flags.isEmpty { object["$options"] = .string(String(flags)) }
        return Self([field: .object(object)])
    }

    /// Requires a text that contains `part`.
    public static func contains(_ field: String, _ part: String) -> Self {
        Self(field, "$contains", .string(part))
    }

    /// Requires a text that contains `part`, ignoring case.
    public static func icontains(_ field: String, _ part: String) -> Self {
        Self(field, "$icontains", .string(part))
    }

    /// Requires a value between two bounds, both included.
    public static func range(
        _ field: String, _ lower: JSONValue, _ upper: JSONValue
    ) -> Self {
        Self(field, "$range", .array([lower, upper]))
    }

    /// Requires a value that is in a list.
    public static func inList(_ field: String, _ values: [JSONValue]) -> Self {
        Self(field, "$in", .array(values))
    }

    /// Requires a value that is not in a list.
    public static func notInList(_ field: String, _ values: [JSONValue]) -> Self {
        Self(field, "$nin", .array(values))
    }

    /// Requires a list that contains all the given elements.
    public static func arrayContains(_ field: String, _ values: [JSONValue]) -> Self {
        Self(field, "$all", .array(values))
    }

    /// Requires a field to be null, or not to be null.
    public static func isNull(_ field: String, _ isNull: Bool = true) -> Self {
        Self(field, "$isnull", .bool(isNull))
    }

    /// Requires a field to exist, or not to exist.
    public static func exists(_ field: String, _ exists: Bool = true) -> Self {
        Self(field, "$exists", .bool(exists))
    }

    /// Requires an object that has a key.
    ///
    /// - Throws: ``PredicateError`` if the key contains a dot, and so names a member of a member.
    public static func hasKey(_ field: String, _ key: String) throws(PredicateError) -> Self {
        guard !key.contains(".") else {
            throw PredicateError(
                .check, "invalid options: a key must not contain dots", found: key,
                expected: "a key without dots")
        }
        return Self(field, "$has_key", .string(key))
    }

    /// Requires a location inside a polygon of `[longitude, latitude]` points.
    ///
    /// The last point repeats the first.
    public static func within(_ field: String, polygon: [[Double]]) -> Self {
        Self(field, "$within", geometry("Polygon", .array([.array(polygon.map(point))])))
    }

    /// Requires a polygon that contains a point.
    public static func include(_ field: String, point: [Double]) -> Self {
        Self(field, "$intersects", geometry("Point", self.point(point)))
    }

    /// Requires a location in a circle.
    ///
    /// `radius` is in kilometres.
    public static func withinCircle(
        _ field: String, center: [Double], radius: Double
    ) -> Self {
        Self(field, "$center", ["radius": .number(radius), "coordinates": point(center)])
    }

    /// Requires a location in a ring.
    ///
    /// The distances are in metres.
    public static func withinRegion(
        _ field: String, center: [Double], minimum: Double = 0, maximum: Double? = nil
    ) -> Self {
        var object: JSONObject = [
            "geometry": geometry("Point", point(center)), "min_distance": .number(minimum),
        ]
        object["max_distance"] = maximum.map(JSONValue.number)
        return Self(field, "$nearsphere", .object(object))
    }

    /// Requires all of the conditions.
    public static func and(_ conditions: [MinappCondition]) -> Self {
        Self(["$and": .array(conditions.map(\.json))])
    }

    /// Requires any of the conditions.
    public static func or(_ conditions: [MinappCondition]) -> Self {
        Self(["$or": .array(conditions.map(\.json))])
    }

    private static func point(_ coordinates: [Double]) -> JSONValue {
        .array(coordinates.map(JSONValue.number))
    }

    private static func geometry(_ type: String, _ coordinates: JSONValue) -> JSONValue {
        ["type": .string(type), "coordinates": coordinates]
    }
}
