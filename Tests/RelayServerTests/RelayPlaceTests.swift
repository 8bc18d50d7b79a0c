import RelayModel
import Testing

@testable import RelayServer

/// The route that a path belongs to if its method is unknown.
@Suite struct RelayPlaceTests {
    private static let places = ["/", "/a/b", "/a/{name}", "/{name}/b/c"].map {
        RelayPlace(path: $0, allowed: "GET", pages: .none)
    }

    @Test(arguments: [
        ("/", "/"), ("/a/b", "/a/b"), ("//a/b/", "/a/b"), ("/a/c", "/a/{name}"),
        ("/x/b/c", "/{name}/b/c"), ("/a", nil), ("/A/b", nil), ("/x/b/d", nil),
        (String(repeating: "/a", count: 40_000), nil),
    ])
    func `a path belongs to the first route with matching parts`(asked: String, found: String?) {
        #expect(RelayPlace.first(of: Self.places, at: asked)?.path == found)
    }
}
