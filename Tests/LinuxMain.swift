import Testing
import XCTest

/// Where the tests begin: all of them are of Swift Testing, which finds them by itself.
///
/// Without this file SwiftPM would look for tests of XCTest, in an index that the compiler had to
/// write for that alone, and find none.
@main struct AllTests {
    static func main() async {
        // `swift test` asks for XCTest's tests too, and means those when it names no library.
        guard CommandLine.arguments.contains("swift-testing") else { XCTMain([]) }
        await Testing.__swiftPMEntryPoint() as Never
    }
}
