import Foundation
import Testing
import XCTest

/// The entry point of the tests: all of them are Swift Testing's, which finds them by itself.
///
/// Without this file SwiftPM would look for XCTest tests in an index that the compiler had to write
/// for that purpose alone, and find none. With it, SwiftPM runs only XCTest unless it is told
/// otherwise. Such a run would pass without a single test, so it is refused.
@main struct AllTests {
    static func main() async {
        let arguments = CommandLine.arguments
        if arguments.contains("swift-testing") {
            await Testing.__swiftPMEntryPoint() as Never
        }
        if arguments.contains("--dump-tests-json") { XCTMain([]) }
        let words =
            "No test is XCTest's: run deploy/test, or swift test with "
            + "--disable-xctest --enable-swift-testing.\n"
        FileHandle.standardError.write(Data(words.utf8))
        exit(1)
    }
}
