package import LogShipping
package import RelayModel
import Storage

/// Judges the state of a relay: the overview in, findings out.
///
/// `belfry doctor`, which asks from outside, and the console, which asks the relay, use the same
/// judgement. It is a value without a clock or network, so that every verdict can be tested.
package struct Checkup: Sendable {
    /// The limits of what counts as healthy.
    package struct Bounds: Sendable, Hashable {
        /// The longest time without a webhook of a source.
        package var silence = Duration.seconds(24 * 3600)
        /// The shortest remaining validity of a certificate.
        package var validity = Duration.seconds(30 * 86_400)
        /// The greatest age of the newest backup.
        package var backupAge = Duration.seconds(26 * 3600)
        /// The number of log entries that may be unsettled; a busy relay briefly has thousands.
        package var behind: Int64 = 10_000

        package init() {}
    }

    /// The backups that were found.
    package enum Backup: Sendable, Hashable {
        /// No place of backups was given.
        case notNamed
        /// The newest single copy in the folder, or the given file itself.
        case made(Timestamp, path: String)
        /// There is no backup at the place.
        case missing(path: String)
        /// There are continuous backups; the value says how far a restore from them reaches.
        case shipped(BackupReach, place: String)
        /// The place did not answer, or refused.
        case unread(place: String, reason: String)
    }

    /// The answer of the overview call.
    let overview: JSONValue
    /// The time by this machine's clock, half-way between the call and the answer.
    let now: Timestamp
    /// Whether a relay runs; otherwise its file was opened.
    let isRunning: Bool
    package var backup = Backup.notNamed
    package var bounds = Bounds()
    /// The options with which other commands reach the same relay, for example ` --url …`.
    package var place = ""
    /// The options with which commands about continuous backups find their settings, for example
    /// ` --config …`.
    package var config = ""
    /// The options with which commands that read the store itself find it, for example
    /// ` --database …`.
    package var store = ""
    /// Whether the store is on another machine, that of the relay.
    package var isElsewhere = false
    /// The path of the relay's file, as far as it is known here.
    package var database = StoreSettings.usualPath
    /// Whether the store is in a database of a server, which has its own means of backup.
    package var isOnServer: Bool
    /// Whether the relay judges itself; then it has no other clock to compare, and no backups to
    /// look at.
    var isOwn = false

    /// Creates a checkup of the overview call's answer.
    package init(overview: JSONValue, now: Timestamp, isRunning: Bool) {
        self.overview = overview
        self.now = now
        self.isRunning = isRunning
        isOnServer = if case .integer? = overview.member(["nodes"]) { true } else { false }
    }

    /// All checks, in the order in which an operator would make them.
    package var diagnosis: Diagnosis {
        let own: [Finding] =
            [
                serving.about(.relay), log.about(.log), clock.about(.clock), disk.about(.disk),
                backups.about(.backup), intake.about(.intake),
            ] + contents
        let whole: [Finding] = own + certificate + settings + shards + containersMissing
        return Diagnosis(
            findings: whole.filter { !isOwn || !elsewhere.contains($0.subject.kind) }
                + containers.flatMap(findings))
    }

    /// The checks that a relay cannot make of itself.
    private var elsewhere: Set<Finding.Kind> {
        if case .object? = value("backup") { [.clock] } else { [.clock, .backup] }
    }

    /// The checks of the containers only.
    var diagnosisOfContainers: Diagnosis { Diagnosis(findings: containers.flatMap(findings)) }

    private func findings(of container: JSONValue) -> [Finding] {
        [
            sending(container).about(.gateway, of: container),
            credential(container).about(.credential, of: container),
        ] + signIn(container) + sources(container)
            + [leftovers(container).about(.leftovers, of: container)]
    }

    // MARK: The relay

    private var serving: Finding {
        guard isRunning else {
            return Finding(
                check: "relay", state: .unknown,
                text: "no relay is running; the store's file was read directly")
        }
        guard case .object(let reasons)? = value("notReady"), !reasons.members.isEmpty else {
            return Finding(check: "relay", state: .ok, text: "serves and follows its log")
        }
        let words = reasons.members.map { "\($0.name): \($0.value.shown)" }
        return Finding(
            check: "relay", state: .fail,
            text: "the relay is not ready (\(words.joined(separator: "; ")))",
            next: "belfry overview\(place)")
    }

    private var log: Finding {
        let quarantined = overview.count(["quarantined"])
        if quarantined > 0 { return setAside(quarantined) }
        let behind = Int64(text(["behind"])) ?? 0
        let retries = overview.count(["retries"])
        let ranges = overview.count(["rangeSubscriptions"])
        let words =
            Counted.text(behind, "entry is not settled", "entries are not settled") + "; "
            + Counted.text(retries, "retry waits", "retries wait")
            + (ranges > 0
                ? "; huge fan-outs still owe " + Counted.text(ranges, "subscription") : "")
        let isSlow = behind > bounds.behind
        return Finding(
            check: "log", state: isSlow ? .warn : .ok, text: words,
            next: isSlow ? "belfry overview\(place)" : nil)
    }

    private var clock: Finding {
        guard isRunning, let theirs = Timestamp(iso8601: text(["now"])) else {
            return Finding(check: "clock", state: .unknown, text: "no relay is running")
        }
        let skew = theirs.duration(since: now)
        let size = max(skew, .zero - skew)
        let seconds = skew / .seconds(1)
        let rounded = (seconds * 10).rounded() / 10
        // APNs refuses provider tokens whose time is off by an hour. Signatures of senders and
        // tokens of users tolerate only minutes or less.
        let state: Finding.State =
            size >= .seconds(60) ? .fail : size >= .seconds(5) ? .warn : .ok
        return Finding(
            check: "clock", state: state,
            text: state == .ok
                ? "agrees with this machine's within 5 s"
                : "the relay's clock differs by \(rounded) s from this machine's",
            next: state == .ok ? nil : "timedatectl timesync-status")
    }

    private var disk: Finding {
        guard case .object(let disk)? = value("disk"),
            case .integer(let free)? = disk["freeBytes"],
            case .integer(let reserve)? = disk["reserveBytes"]
        else {
            return Finding(check: "disk", state: .unknown, text: "the free space is unknown")
        }
        let words = "\(Self.megabytes(free)) free, \(Self.megabytes(reserve)) are reserved"
        // Below the reserve, changes are refused; below ten times the reserve, the operator should
        // act.
        let state: Finding.State =
            free < reserve ? .fail : free < max(reserve, 64 << 20) * 10 ? .warn : .ok
        // Backups and snapshots need new files; the store's own files exist already.
        if state != .fail, case .integer(let files)? = disk["freeFiles"], files < Self.leastFiles {
            return Finding(
                check: "disk", state: .warn,
                text: "the disk has inodes for only "
                    + Counted.text(files, "more file", "more files")
                    + ", although it has free space (\(words))",
                next: "df -i")
        }
        return Finding(
            check: "disk", state: state,
            text: state == .ok ? words : "the disk has little space left: \(words)",
            next: state == .ok ? nil : "df -h")
    }

    /// The number of new files that a disk should still have room for.
    private static let leastFiles: Int64 = 1000

    private static func megabytes(_ bytes: Int64) -> String { "\(bytes / 1_000_000) MB" }

    /// The remaining validity of the listeners' certificate, if there is one.
    private var certificate: [Finding] {
        guard let end = Timestamp(iso8601: text(["tls", "expiresAt"])) else { return [] }
        let left = end.duration(since: now)
        let state: Finding.State = left <= .zero ? .fail : left < bounds.validity ? .warn : .ok
        return [
            Finding(
                check: "tls", state: state,
                text: state == .fail
                    ? "the relay's own certificate expired at \(end.iso8601): clients refuse it"
                    : "the relay's own certificate is valid for another \(Self.words(left))",
                next: state == .ok
                    ? nil : "renew tls.certificateFile; the relay loads the new file by itself"
            ).about(.relay)
        ]
    }

    /// Whether all relays of the store have the same settings, if there may be several.
    private var settings: [Finding] {
        guard case .integer? = value("nodes"), case .array(let sentences)? = value("disagreements")
        else { return [] }
        return relayFinding(
            "settings", wrong: sentences.map(\.shown), as: .warn,
            else: "all relays of the store have the same settings", next: onStore("belfry nodes"))
    }

    /// Whether each shard of the service has an owner that answers, if there are several shards.
    private var shards: [Finding] {
        guard case .array(let all)? = value("shards") else { return [] }
        let lost = all.filter { $0.member(["reason"]) != nil }.map {
            "the shard \($0.words(["shard"])) cannot be reached: \($0.words(["reason"]))"
        }
        let asked = all.count { $0.words(["state"]) != "movedAway" }
        return relayFinding(
            "shards", wrong: lost, as: .fail, else: "each of the \(asked) shards has an owner",
            next: "belfry shards\(place)")
    }

    /// Returns the finding about all relays together: the problems, or that there are none.
    private func relayFinding(
        _ check: String, wrong sentences: [String], as state: Finding.State, else right: String,
        next: String
    ) -> [Finding] {
        let isRight = sentences.isEmpty
        return [
            Finding(
                check: check, state: isRight ? .ok : state,
                text: isRight ? right : sentences.joined(separator: "; "),
                next: isRight ? nil : next
            ).about(.relay)
        ]
    }

    /// A warning if there is no container, because the relay then serves nobody, however healthy it
    /// is.
    private var containersMissing: [Finding] {
        guard case .array(let containers)? = value("containers"), containers.isEmpty
        else { return [] }
        return [
            Finding(
                check: "container", state: .warn,
                text: "there is no container yet, so nothing can be saved or posted",
                next: "belfry containers create --help"
            ).about(.relay)
        ]
    }

    private var intake: Finding {
        guard case .object(let refused)? = value("refusing"), !refused.members.isEmpty else {
            return Finding(check: "intake", state: .ok, text: "changes are accepted")
        }
        let words = refused.members.map { "\($0.name): \($0.value.shown)" }
        return Finding(
            check: "intake", state: .fail,
            text: "changes are refused (\(words.joined(separator: "; ")))",
            next: "belfry overview\(place)")
    }
}

extension Checkup {
    /// The containers in the overview.
    var containers: [JSONValue] {
        guard case .array(let containers)? = value("containers") else { return [] }
        return containers
    }

    func value(_ name: String) -> JSONValue? { overview.member([name]) }

    func text(_ path: [String]) -> String { overview.words(path) }

    /// Returns a text as one shell word.
    package static func quoted(_ text: String) -> String {
        let plain = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x2B...0x3A, 0x40...0x5A, 0x5F, 0x61...0x7A: true
            default: false
            }
        }
        return plain && !text.isEmpty ? text : ShellWord.quoted(text)
    }

    /// Returns a duration in its largest suitable unit.
    static func words(_ duration: Duration) -> String {
        let seconds = max(0, duration.components.seconds)
        return switch seconds {
        case ..<120: "\(seconds) s"
        case ..<7200: "\(seconds / 60) min"
        case ..<172_800: "\(seconds / 3600) h"
        default: "\(seconds / 86_400) days"
        }
    }
}
