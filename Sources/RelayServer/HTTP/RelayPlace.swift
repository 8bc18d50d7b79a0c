import Hummingbird

/// A path that the router found.
struct RelayPlace: Sendable {
    /// The template.
    let path: String
    /// Its methods, as `Allow` has them.
    let allowed: String
    /// What pages of other origins may do with its answers.
    let pages: RelayRoute.Pages
    /// Who is to know of methods that it does not have.
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

    /// How many parts are variable.
    var variables: Int { names.count }

    /// The first of some places to which the path of a request leads, as the router takes it apart.
    ///
    /// It is taken apart once: strangers send paths of tens of thousands of parts.
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

    /// The variable parts, decoded.
    ///
    /// Only those of this path: the router leaves behind what it met on ways that led nowhere.
    func parameters(of context: RelayContext) -> [String: String] {
        var parameters: [String: String] = [:]
        for name in names {
            parameters[name] = context.parameters.get(name).map { QueryParameters.decodePath($0) }
        }
        return parameters
    }
}
