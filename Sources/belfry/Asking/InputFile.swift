import Foundation

/// A file that a command reads; `-` is what is piped in.
struct InputFile {
    private let path: String

    init(_ path: String) {
        self.path = path
    }

    func text() throws -> String {
        String(decoding: try bytes(), as: UTF8.self)
    }

    func bytes() throws -> [UInt8] {
        do {
            let data =
                path == "-"
                ? try FileHandle.standardInput.readToEnd()
                : try Data(contentsOf: URL(filePath: path))
            return Array(data ?? Data())
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            throw CommandFailure(.input, "there is no file \(path)")
        } catch {
            throw CommandFailure(
                .input, "the file \(path) cannot be read: \(error.localizedDescription)")
        }
    }
}
