import RelayModel
import Storage

/// The operations of one request, each of which is judged on its own.
///
/// An operation that cannot be decoded is answered in its place. The others are applied, unless the
/// request is atomic.
struct ItemisedRequest<Operation> {
    /// The result of decoding one element.
    enum Item {
        case operation(Operation)
        case refused(APIError, name: String)
    }

    /// The operations, in order.
    let items: [Item]
    private let kind: ItemKind

    /// Decodes the elements of ``RelayModel/JSONReader/operations(within:)`` one after the other.
    init(
        _ elements: [JSONValue], of kind: ItemKind,
        read: (_ element: JSONValue, _ path: String) throws -> Operation
    ) {
        self.kind = kind
        items = elements.enumerated().map { index, element in
            do {
                return .operation(try read(element, "operations[\(index)]"))
            } catch {
                return .refused(
                    ErrorMapping(error).apiError, name: kind.writtenName(of: element))
            }
        }
    }

    /// Returns the operations to apply; `nil` if an atomic request is already refused.
    func operations(_ atomicity: EditAtomicity) -> [Operation]? {
        var operations: [Operation] = []
        for item in items {
            switch item {
            case .operation(let operation): operations.append(operation)
            case .refused where atomicity == .allOrNothing: return nil
            case .refused: break
            }
        }
        return operations
    }

    /// Returns each item with the outcome of its operation.
    ///
    /// `outcomes` are those of ``operations(_:)``, in order. If there are none, nothing was
    /// applied.
    func judged<Outcome>(_ outcomes: [Outcome]) -> [(item: Item, outcome: Outcome?)] {
        var rest = outcomes[...]
        return items.map { item in
            if case .operation = item { (item, rest.popFirst()) } else { (item, nil) }
        }
    }

    /// Returns the answer's entries, one for each element, in order.
    func entries<Outcome>(
        _ outcomes: [Outcome], uuid: String, entry: (Operation, Outcome?) -> JSONValue
    ) -> [JSONValue] {
        judged(outcomes).map { item, outcome in
            switch item {
            case .operation(let operation): entry(operation, outcome)
            case .refused(let error, let name):
                error.entry(kind.name, .string(name), uuid: uuid)
            }
        }
    }
}

extension ItemisedRequest: Sendable where Operation: Sendable {}

extension ItemisedRequest.Item: Sendable where Operation: Sendable {}

/// The kind of thing that the operations of a request are about.
struct ItemKind: Sendable, Hashable {
    /// The member of an operation that contains the thing.
    let member: String
    /// The member of the thing, and of the answer, that names it.
    let name: String

    static let subscription = ItemKind(member: "subscription", name: "subscriptionID")
    static let record = ItemKind(member: "record", name: "recordName")

    /// Returns the name as the client wrote it, for the answer to an operation that cannot be
    /// decoded.
    func writtenName(of element: JSONValue) -> String {
        guard case .object(let operation) = element,
            case .object(let thing)? = operation[member],
            case .string(let text)? = thing[name]
        else { return "" }
        return text.shortened
    }
}

extension JSONReader {
    /// Returns the elements of `operations`.
    ///
    /// - Throws: `JSONContractError`, or the error 400 if there are too many.
    func operations(within limits: RequestLimits) throws -> [JSONValue] {
        let elements = try require("operations", try array("operations"))
        try limits.check(elements.count, of: "operations")
        return elements
    }
}

extension APIError {
    /// Returns this error as the entry of one thing in a list; `member` is the member that names
    /// the thing.
    func entry(_ member: String, _ name: JSONValue, uuid: String) -> JSONValue {
        var object: JSONObject = [member: name]
        object.members.append(contentsOf: json(uuid: uuid).members)
        return .object(object)
    }

    /// The error of an operation whose atomic request was refused because of another operation.
    static let undone = APIError(
        .atomicError, "not applied, because another operation of the request was refused")
}
