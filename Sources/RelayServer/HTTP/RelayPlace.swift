import Hummingbird

/// A path of the routes, with its methods.
struct RelayPlace: Sendable {
    /// The path template.
    let path: String
    /// The supported methods, in the form of the `Allow` field.
    let allowed: String
    /// What pages of other origins may do with the answers.
    let pages: RelayRoute.Pages
    /// Called for methods that the path does not support.
    let refuse: RelayRoute.Refuse?
    /// The names of its variable parts.
    private let names: [String]

    init(
        path: String, allowed: String, pages: RelayRoute.Pages, refuse: RelayRoute.Refuse? = nil
    ) {
        self.path = path
        self.allowed = allowed
        self.pages = pages
        self.refuse = refuse
        names = path.split(separator: "/").filter { $0.hasPrefix("{") }.map {
            String($0.dropFirst().dropLast())
        }
    }

    /// The number of variable parts.
    var variables: Int { names.count }

    /// Returns the first place that matches a request's path, split as the router splits it.
    ///
    /// The path is split once, because unauthenticated clients may send paths of tens of thousands
    /// of parts.
    static func first(of places: [RelayPlace], at asked: String) -> RelayPlace? {
        let parts = Self.parts(of: asked)
        return places.first { $0.fits(parts) }
    }

    private func fits(_ asked: [String.UTF8View.SubSequence]) -> Bool {
        let own = Self.parts(of: path)
        return asked.count == own.count
            && zip(asked, own).allSatisfy { part, own in
                own.first == UInt8(ascii: "{") || part.elementsEqual(own)
            }
    }

    private static func parts(of path: String) -> [String.UTF8View.SubSequence] {
        path.utf8.split(separator: UInt8(ascii: "/"))
    }

    /// Returns the variable parts, decoded.
    ///
    /// It returns only those of this path, because the router also leaves the parameters of paths
    /// that it tried without success.
    func parameters(of context: RelayContext) -> [String: String] {
        var parameters: [String: String] = [:]
        for name in names {
            parameters[name] = context.parameters.get(name).map { QueryParameters.decodePath($0) }
        }
        return parameters
    }
}
