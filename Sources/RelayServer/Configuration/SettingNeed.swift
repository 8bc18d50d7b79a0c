/// Settings that have an effect only if another one is as they need it.
///
/// One table for all of them: what is not in it has an effect by itself.
struct SettingNeed: Sendable {
    /// What the other setting must be.
    enum Condition: Sendable, Hashable {
        /// It has a value.
        case set
        /// It has none.
        case notSet
        /// It has any value but this.
        case not(String)
        /// Its value begins with this.
        case beginning(String)
    }

    /// What becomes of a start with a setting that has no effect.
    enum Weight: Sendable, Hashable {
        /// The relay does what was meant, without the setting: the log warns of it.
        case warned
        /// The relay would work on something else than was meant, and refuses to start.
        case refused
    }

    /// The settings that need it.
    let names: [String]
    /// The other setting.
    let other: String
    let condition: Condition
    var weight = Weight.warned

    /// All of them; of a setting that is in several, the first that is not met counts.
    static let all = [
        SettingNeed(
            names: ["storage.schema"], other: "storage.url", condition: .set, weight: .refused),
        SettingNeed(
            names: ["storage.walMegabytes", "bounds.walMegabytes"], other: "storage.url",
            condition: .notSet),
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

    /// Whether the other setting's value, which may be its default, is as it must be.
    func isMet(by value: String?) -> Bool {
        switch condition {
        case .set: value != nil
        case .notSet: value == nil
        case .not(let word): value != word
        case .beginning(let start): value?.hasPrefix(start) ?? false
        }
    }

    /// What is said of a setting that has no effect.
    func sentence(of name: String) -> String {
        switch condition {
        case .set: "\(name) has no effect without \(other)"
        case .notSet: "\(name) has no effect beside \(other)"
        case .not(let word): "\(name) has no effect while \(other) is \(word)"
        case .beginning(let start):
            "\(name) has no effect unless \(other) begins with \(start)"
        }
    }
}
