import Foundation
import Testing
import XCTest

/// Where the tests begin: all of them are of Swift Testing, which finds them by itself.
///
/// Without this file SwiftPM would look for tests of XCTest, in an index that the compiler had to
/// write for that alone, and find none. With it, SwiftPM asks for XCTest's alone unless it is told
/// otherwise: that would pass without a test, and is refused.
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
