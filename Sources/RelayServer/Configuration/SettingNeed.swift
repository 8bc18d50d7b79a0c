/// A dependency of settings on another one: they have an effect only if that one meets a condition.
///
/// All dependencies are in one table. A setting that is not in it always has an effect.
struct SettingNeed: Sendable {
    /// The condition that the other setting must meet.
    enum Condition: Sendable, Hashable {
        /// It has a value.
        case set
        /// It has no value.
        case notSet
        /// It has any other value than this.
        case not(String)
        /// Its value begins with this text.
        case beginning(String)
    }

    /// What happens at the start if a setting has no effect.
    enum Weight: Sendable, Hashable {
        /// The relay does what was meant even without the setting, and logs a warning.
        case warned
        /// The relay would do something that was not meant, so it refuses to start.
        case refused
    }

    /// The names of the dependent settings.
    let names: [String]
    /// The name of the other setting.
    let other: String
    let condition: Condition
    var weight = Weight.warned

    /// All dependencies; if a setting has several, the first that is not met is reported.
    static let all = [
        SettingNeed(
            names: ["storage.schema", "storage.requireStandby"], other: "storage.url",
            condition: .set, weight: .refused),
        SettingNeed(
            names: [
                "storage.walMegabytes", "bounds.walMegabytes", "storage.diskReserveMegabytes",
            ], other: "storage.url", condition: .notSet),
        SettingNeed(
            names: ["bounds.databaseMegabytes"], other: "storage.url", condition: .set),
        SettingNeed(
            names: [
                "nodes.name", "nodes.advertise", "nodes.host", "nodes.port", "nodes.waitSeconds",
                "nodes.warm", "nodes.balance", "nodes.machine",
            ], other: "storage.url", condition: .set),
        SettingNeed(
            names: ["nodes.host", "nodes.port"], other: "nodes.advertise", condition: .not("none")),
        SettingNeed(
            names: ["nodes.balance", "nodes.machine"], other: "nodes.schemas", condition: .set),
        SettingNeed(
            names: ["nodes.machine"], other: "nodes.balance", condition: .not("off")),
        SettingNeed(
            names: [
                "backup.intervalSeconds", "backup.baseHours", "backup.keep",
                "backup.spoolMegabytes",
            ], other: "backup.url", condition: .set),
        SettingNeed(
            names: [
                "backup.timeoutSeconds", "backup.s3.endpoint", "backup.s3.region",
                "backup.s3.addressing", "backup.s3.credentialsFile", "backup.s3.accessKeyID",
                "backup.s3.secretAccessKey", "backup.s3.sessionToken", "backup.s3.caFile",
            ], other: "backup.url", condition: .beginning("s3://")),
        SettingNeed(
            names: [
                "backup.s3.accessKeyID", "backup.s3.secretAccessKey", "backup.s3.sessionToken",
            ], other: "backup.s3.credentialsFile", condition: .notSet),
        SettingNeed(
            names: ["backup.s3.secretAccessKey", "backup.s3.sessionToken"],
            other: "backup.s3.accessKeyID", condition: .set),
        SettingNeed(
            names: ["backup.s3.accessKeyID"], other: "backup.s3.secretAccessKey", condition: .set),
        SettingNeed(
            names: ["apns.development.url", "apns.production.url"], other: "apns.url",
            condition: .notSet),
        SettingNeed(
            names: ["log.accessSample", "log.accessPerSecond"], other: "log.access",
            condition: .not("off")),
        SettingNeed(
            names: ["console.idleMinutes", "console.sessionHours"], other: "console.enabled",
            condition: .not("off")),
    ]

    /// Returns whether the other setting's value, which may be its default, meets the condition.
    func isMet(by value: String?) -> Bool {
        switch condition {
        case .set: value != nil
        case .notSet: value == nil
        case .not(let word): value != word
        case .beginning(let start): value?.hasPrefix(start) ?? false
        }
    }

    /// Returns a sentence about a setting that has no effect.
    func sentence(of name: String) -> String {
        switch condition {
        case .set: "\(name) has no effect without \(other)"
        case .notSet: "\(name) has no effect together with \(other)"
        case .not(let word): "\(name) has no effect while \(other) is \(word)"
        case .beginning(let start):
            "\(name) has no effect unless \(other) begins with \(start)"
        }
    }
}
