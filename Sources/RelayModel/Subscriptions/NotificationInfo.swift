/// How a subscriber wants to be told: CloudKit's notification info, with the keys that only the
/// native class has, and with our own.
///
/// ```swift
/// var info = NotificationInfo()
/// info.shouldSendContentAvailable = true
/// #expect(!info.isVisible)
/// info.alertBody = "A new artwork by your favourite artist"
/// info.soundName = "default"
/// #expect(info.isVisible)
/// ```
public struct NotificationInfo: Sendable, Hashable {
    /// The text of the alert.
    public var alertBody: String?
    /// The key of a localised text; overrides ``alertBody``.
    public var alertLocalizationKey: String?
    /// Names of record fields whose values fill the localised text.
    public var alertLocalizationArgs: [String] = []
    /// The title.
    public var title: String?
    /// The key of a localised title; overrides ``title``.
    public var titleLocalizationKey: String?
    /// Names of record fields whose values fill the localised title.
    public var titleLocalizationArgs: [String] = []
    /// The subtitle.
    public var subtitle: String?
    /// The key of a localised subtitle; overrides ``subtitle``.
    public var subtitleLocalizationKey: String?
    /// Names of record fields whose values fill the localised subtitle.
    public var subtitleLocalizationArgs: [String] = []
    /// The key of a localised action button.
    public var alertActionLocalizationKey: String?
    /// The image shown while the application launches.
    public var alertLaunchImage: String?
    /// The sound; `default` is the system's.
    public var soundName: String?
    /// Whether each push raises the device's badge by one.
    public var shouldBadge = false
    /// Whether the application is woken in the background.
    public var shouldSendContentAvailable = false
    /// Whether a service extension may change the push on the device.
    public var shouldSendMutableContent = false
    /// The category of actions.
    public var category: String?
    /// The record field whose value is the `apns-collapse-id` header, or the header itself for
    /// records without such a field.
    public var collapseIDKey: String?
    /// Names of record fields whose values travel in the push.
    public var desiredKeys: [String] = []
    /// The name of ``desiredKeys`` that the client used, which answers use as well.
    public var desiredKeysName = DesiredKeysName.additionalFields
    /// The names of the localised titles' keys that the client used, which answers use as well.
    public var titleNames = TitleNames.native
    /// How long the gateway keeps a push for a device that is away, in seconds (ours).
    ///
    /// 0 means one attempt; `nil` leaves it to the container.
    public var expirationSeconds: Int64?
    /// 1, 5 or 10 (ours); `nil` follows CloudKit: 10 with anything visible, else 5.
    public var priority: Int64?

    /// The name of the list of fields that travel in a push.
    public enum DesiredKeysName: String, Sendable, Hashable {
        /// The name in CloudKit Web Services.
        case additionalFields
        /// The name in the native class.
        case desiredKeys
    }

    /// The names of the keys and arguments of a localised title and subtitle.
    public enum TitleNames: Sendable, Hashable {
        /// The names in the native class: `titleLocalizationKey`, `titleLocalizationArgs`.
        case native
        /// The names in CloudKit's web service: `titleLocalizedKey`, `titleLocalizedArguments`.
        case service
    }

    /// Creates a notification info that shows nothing.
    public init() {}

    /// Whether a push shows something, plays a sound or sets the badge.
    ///
    /// If not, it is a background push.
    public var isVisible: Bool {
        hasAlert || soundName?.isEmpty == false || shouldBadge
    }

    /// Whether there is any text to show; empty texts do not count.
    public var hasAlert: Bool {
        alertTexts.contains { $0?.isEmpty == false }
    }

    /// Whether any member for an alert, a sound or a badge is present, even if it is empty.
    var mentionsAlert: Bool {
        alertTexts.contains { $0 != nil } || soundName != nil || shouldBadge
    }

    private var alertTexts: [String?] {
        [
            alertBody, alertLocalizationKey, title, titleLocalizationKey, subtitle,
            subtitleLocalizationKey,
        ]
    }

    /// Treats empty texts, keys and names as absent.
    ///
    /// Clients that always write all members mean them this way.
    public mutating func dropEmptyTexts() {
        let texts: [WritableKeyPath<NotificationInfo, String?>] = [
            \.alertBody, \.alertLocalizationKey, \.title, \.titleLocalizationKey, \.subtitle,
            \.subtitleLocalizationKey, \.alertActionLocalizationKey, \.alertLaunchImage,
            \.soundName, \.category,
        ]
        for text in texts where self[keyPath: text]?.isEmpty == true { self[keyPath: text] = nil }
    }
}
