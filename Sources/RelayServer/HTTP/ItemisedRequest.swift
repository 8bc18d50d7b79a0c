import RelayModel
import Storage

/// The operations of one request, each of which stands for itself: one that cannot be read is
/// answered in its place, and the others go on, unless the request is atomic.
struct ItemisedRequest<Operation> {
    /// What is made of one element.
    enum Item {
        case operation(Operation)
        case refused(APIError, name: String)
    }

    /// The operations, in order.
    let items: [Item]
    private let kind: ItemKind

    /// Reads the elements of ``RelayModel/JSONReader/operations(within:)`` one after the other.
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

    /// What is to be applied; `nil` if an atomic request has been refused already.
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

    /// The items, each operation with what became of it; `outcomes` are those of
    /// ``operations(_:)``, and where there are none, nothing was applied.
    func judged<Outcome>(_ outcomes: [Outcome]) -> [(item: Item, outcome: Outcome?)] {
        var rest = outcomes[...]
        return items.map { item in
            if case .operation = item { (item, rest.popFirst()) } else { (item, nil) }
        }
    }

    /// The answer's entries, one for each element, in order.
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

/// What the operations of a request are about.
struct ItemKind: Sendable, Hashable {
    /// The member of an operation that has the thing.
    let member: String
    /// The member of the thing, and of an answer, that names it.
    let name: String

    static let subscription = ItemKind(member: "subscription", name: "subscriptionID")
    static let record = ItemKind(member: "record", name: "recordName")

    /// The name as the client wrote it, for the sake of an answer about something unreadable.
    func writtenName(of element: JSONValue) -> String {
        guard case .object(let operation) = element,
            case .object(let thing)? = operation[member],
            case .string(let text)? = thing[name]
        else { return "" }
        return text.shortened
    }
}

extension JSONReader {
    /// The elements of `operations`.
    ///
    /// - Throws: `JSONContractError`, or 400 if they are too many.
    func operations(within limits: RequestLimits) throws -> [JSONValue] {
        let elements = try require("operations", try array("operations"))
        try limits.check(elements.count, of: "operations")
        return elements
    }
}

extension APIError {
    /// This error in the place of one thing of a list, which `member` names.
    func entry(_ member: String, _ name: JSONValue, uuid: String) -> JSONValue {
        var object: JSONObject = [member: name]
        object.members.append(contentsOf: json(uuid: uuid).members)
        return .object(object)
    }

    /// Another operation of an atomic request was refused.
    static let undone = APIError(
        .atomicError, "not applied, because another operation of the request was refused")
}
