/// Why a gateway cannot be created.
package enum GatewaySetupError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The loaded libcurl cannot do what is needed.
    case unusableLibrary(String)
    /// The process has no thread or descriptor left.
    case outOfResources(String)
    /// A setting is outside its range.
    case badSetting(String)

    /// What is wrong.
    package var description: String {
        switch self {
        case .unusableLibrary(let text), .outOfResources(let text), .badSetting(let text): text
        }
    }
}
