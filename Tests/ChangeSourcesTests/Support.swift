import RelayModel
import Testing

@testable import ChangeSources

/// The moment at which every test's webhooks arrive: 2023-11-14T22:13:20Z.
let now = Timestamp(seconds: 1_700_000_000)

/// Returns a source of `preset` without verification, with the members of `more` added.
func source(
    _ preset: String, mapping: String = "{}", more: String = ""
) throws -> ChangeSource {
    try ChangeSource(
        json: JSONValue(
            parsing: """
                {"name": "shop", "preset": "\(preset)", "verification": {"scheme": "none"},
                 "mapping": \(mapping)\(more)}
                """))
}

func webhook(_ body: String, headers: WebhookHeaders = [:]) -> WebhookRequest {
    WebhookRequest(headers: headers, body: Array(body.utf8), receivedAt: now)
}

/// Returns the items of a decoded body, or the error, as texts.
func decoded(_ source: ChangeSource, _ request: WebhookRequest) -> [String] {
    do {
        return try source.decode(request).items.map(describe)
    } catch {
        return ["error \(error.status.rawValue) \(error)"]
    }
}

/// Returns one item as a line of text.
func describe(_ item: DecodedItem) -> String {
    switch item {
    case .ignored(let reason): return "ignored: \(reason)"
    case .parked(let parked): return "parked: \(parked.path): \(parked.reason)"
    case .refused(let path, let reason): return "refused: \(path): \(reason)"
    case .change(let change, let key): return describe(change) + describe(key)
    case .ended(let ended):
        return "ended: \(ended.types.map(\.rawValue).sorted()) before \(ended.version)"
    }
}

func describe(_ change: RecordChange) -> String {
    var text = "\(change.operation.rawValue) \(change.recordType)/\(change.recordID.recordName)"
    if change.recordID.zoneID != .default {
        let zone = change.recordID.zoneID
        text += " zone \(zone.zoneName)\(zone.ownerRecordName.map { "@\($0)" } ?? "")"
    }
    if change.database != .public || change.owner != nil {
        text += " \(change.database.rawValue) \(change.owner?.rawValue ?? "-")"
    }
    if let before = change.before { text += " before \(describe(before))" }
    if let after = change.after { text += " after \(describe(after))" }
    if let keys = change.changedKeys { text += " changed \(keys.joined(separator: ","))" }
    if let device = change.origin.deviceID { text += " device \(device)" }
    if let user = change.origin.userID { text += " user \(user)" }
    if let readers = change.readers { text += " readers \(readers.joined(separator: ","))" }
    if let moment = change.occurredAt { text += " at \(moment.milliseconds)" }
    if let version = change.version { text += " version \(version)" }
    if change.isSnapshot { text += " snapshot" }
    return text
}

private func describe(_ image: RecordImage) -> String {
    let fields = JSONValue.object(FieldValue.notation(fields: image.fields)).text
    return (image.completeness == .partial ? "partly " : "") + fields
}

private func describe(_ key: DedupeKey?) -> String {
    switch key?.kind {
    case nil: ""
    case .content: " key content \(key?.window?.components.seconds ?? 0)s"
    case let kind?: " key \(kind.rawValue) \(key?.text ?? "")"
    }
}

/// SplitMix64, which gives the same numbers for a seed on every machine.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
