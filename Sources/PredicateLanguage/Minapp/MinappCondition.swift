public import RelayModel

/// A condition as Minapp's clients build it, in its wire form.
///
/// All of Minapp's operators can be written; which of them a subscription may use is judged by
/// ``RecordPredicate/init(where:schema:)``.
public struct MinappCondition: Sendable, Hashable {
    /// The wire form.
    public let json: JSONValue

    /// How `compare` relates a field to a value; the raw value is the wire's operator.
    public enum Relation: String, Sendable, Hashable, CaseIterable {
        /// Equal.
        case equalTo = "$eq"
        /// Not equal.
        case notEqualTo = "$ne"
        /// Less.
        case lessThan = "$lt"
        /// Less or equal.
        case lessThanOrEqualTo = "$lte"
        /// Greater.
        case greaterThan = "$gt"
        /// Greater or equal.
        case greaterThanOrEqualTo = "$gte"
    }

    private init(_ field: String, _ name: String, _ value: JSONValue) {
        json = [field: [name: value]]
    }

    private init(_ json: JSONValue) {
        self.json = json
    }

    /// A field compared with a value; a record is given by its ID.
    public static func compare(
        _ field: String, _ relation: Relation, _ value: JSONValue
    ) -> Self {
        Self(field, relation.rawValue, value)
    }

    /// A search with a regular expression, `/pattern/flags`; without slashes it is all pattern.
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

    /// A text that has `part` in it.
    public static func contains(_ field: String, _ part: String) -> Self {
        Self(field, "$contains", .string(part))
    }

    /// A text that has `part` in it, in whatever case.
    public static func icontains(_ field: String, _ part: String) -> Self {
        Self(field, "$icontains", .string(part))
    }

    /// A value between two bounds, both included.
    public static func range(
        _ field: String, _ lower: JSONValue, _ upper: JSONValue
    ) -> Self {
        Self(field, "$range", .array([lower, upper]))
    }

    /// A value that is one of a list.
    public static func inList(_ field: String, _ values: [JSONValue]) -> Self {
        Self(field, "$in", .array(values))
    }

    /// A value that is none of a list.
    public static func notInList(_ field: String, _ values: [JSONValue]) -> Self {
        Self(field, "$nin", .array(values))
    }

    /// A list that has all of some elements.
    public static func arrayContains(_ field: String, _ values: [JSONValue]) -> Self {
        Self(field, "$all", .array(values))
    }

    /// A field that is null, or is not.
    public static func isNull(_ field: String, _ isNull: Bool = true) -> Self {
        Self(field, "$isnull", .bool(isNull))
    }

    /// A field that is there, or is not.
    public static func exists(_ field: String, _ exists: Bool = true) -> Self {
        Self(field, "$exists", .bool(exists))
    }

    /// An object that has a key.
    ///
    /// - Throws: ``PredicateError`` if the key names a member of a member.
    public static func hasKey(_ field: String, _ key: String) throws(PredicateError) -> Self {
        guard !key.contains(".") else {
            throw PredicateError(
                .check, "invalid options: a key has no dots", found: key,
                expected: "a key without dots")
        }
        return Self(field, "$has_key", .string(key))
    }

    /// A place inside a polygon of `[longitude, latitude]` points, the first repeated at the end.
    public static func within(_ field: String, polygon: [[Double]]) -> Self {
        Self(field, "$within", geometry("Polygon", .array([.array(polygon.map(point))])))
    }

    /// A polygon that takes in a point.
    public static func include(_ field: String, point: [Double]) -> Self {
        Self(field, "$intersects", geometry("Point", self.point(point)))
    }

    /// A place in a circle; `radius` is kilometres.
    public static func withinCircle(
        _ field: String, center: [Double], radius: Double
    ) -> Self {
        Self(field, "$center", ["radius": .number(radius), "coordinates": point(center)])
    }

    /// A place in a ring; the distances are metres.
    public static func withinRegion(
        _ field: String, center: [Double], minimum: Double = 0, maximum: Double? = nil
    ) -> Self {
        var object: JSONObject = [
            "geometry": geometry("Point", point(center)), "min_distance": .number(minimum),
        ]
        object["max_distance"] = maximum.map(JSONValue.number)
        return Self(field, "$nearsphere", .object(object))
    }

    /// All of the conditions.
    public static func and(_ conditions: [MinappCondition]) -> Self {
        Self(["$and": .array(conditions.map(\.json))])
    }

    /// Any of the conditions.
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
