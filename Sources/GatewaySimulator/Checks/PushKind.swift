/// The values of `apns-push-type`, with the rules of each.
///
/// The source is the table of push types in Apple's "Sending notification requests to APNs".
enum PushKind: String, CaseIterable {
    case alert
    case background
    case voip
    case location
    case complication
    case fileprovider
    case mdm
    case liveactivity
    case pushtotalk
    case widgets
    case controls

    /// The allowed priorities.
    ///
    /// Apple states them for alert, background and location. The other types may have any.
    var priorities: Set<Int> {
        switch self {
        case .background: [5]
        case .location: [5, 10]
        case .alert, .voip, .complication, .fileprovider, .mdm, .liveactivity, .pushtotalk,
            .widgets, .controls:
            [1, 5, 10]
        }
    }

    /// The suffix that a topic has after the bundle ID.
    var topicSuffix: String {
        switch self {
        case .alert, .background, .mdm: ""
        case .voip: ".voip"
        case .location: ".location-query"
        case .complication: ".complication"
        case .fileprovider: ".pushkit.fileprovider"
        case .liveactivity: ".push-type.liveactivity"
        case .pushtotalk: ".voip-ptt"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        }
    }

    /// The maximum size of a payload, in bytes.
    var maximumPayloadBytes: Int {
        self == .voip ? 5120 : 4096
    }
}
