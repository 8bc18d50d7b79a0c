/// Why a gateway cannot be created.
package enum GatewaySetupError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The loaded libcurl lacks a necessary feature.
    case unusableLibrary(String)
    /// The process has no thread or descriptor left.
    case outOfResources(String)
    /// A setting is outside its range.
    case badSetting(String)

    /// The description of the fault.
    package var description: String {
        switch self {
        case .unusableLibrary(let text), .outOfResources(let text), .badSetting(let text): text
        }
    }
}
