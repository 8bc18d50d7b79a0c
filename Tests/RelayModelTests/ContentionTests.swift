import RelayModel
import RelayTestKit
import Testing

@Suite struct ContentionTests {
    private static func container(_ name: String) -> ContainerKey {
        ContainerKey(
            container: Fixtures.identifier("iCloud.com.example.\(name)"), environment: .development)
    }

    private let a = Self.container("a")
    private let b = Self.container("b")
    private let c = Self.container("c")

    @Test func `a container that is alone is not contended`() {
        var contention = Contention()
        #expect(!contention.isContended(at: .zero))
        #expect(!contention.isContended(by: a, at: .zero))
        for second in 0..<10 { contention.note(a, at: .seconds(second)) }
        #expect(!contention.isContended(at: .seconds(10)))
        #expect(!contention.isContended(by: a, at: .seconds(10)))
        #expect(contention.isContended(by: b, at: .seconds(10)))
    }

    @Test func `a container counts for a minute after its last change`() {
        var contention = Contention()
        contention.note(a, at: .zero)
        contention.note(b, at: .seconds(30))
        #expect(contention.isContended(at: .seconds(60)))
        #expect(contention.isContended(by: b, at: .seconds(60)))
        #expect(!contention.isContended(at: .seconds(61)))
        #expect(!contention.isContended(by: b, at: .seconds(61)))
        #expect(contention.isContended(by: a, at: .seconds(90)))
        #expect(!contention.isContended(by: a, at: .seconds(91)))
    }

    @Test func `the newest two containers decide, however many there are`() {
        var contention = Contention()
        for (second, one) in [a, b, c, a, a, c].enumerated() {
            contention.note(one, at: .seconds(second))
        }
        #expect(contention.isContended(by: c, at: .seconds(64)))
        #expect(!contention.isContended(by: c, at: .seconds(65)))
        #expect(contention.isContended(by: a, at: .seconds(65)))
        #expect(contention.isContended(by: b, at: .seconds(65)))
    }
}
