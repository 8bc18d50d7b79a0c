import ArgumentParser
import FoundationEssentials
import RelayModel
import RelayServer

/// Posts a change to a running relay, as a database would.
struct TriggerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trigger",
        abstract: "Make a change of a record, and post it to a running relay as a database would.",
        discussion: """
            The command finds a running belfry dev by itself. Name any other relay by the URL of a \
            change source of the preset belfry (belfry sources show) and its secret:

              belfry trigger create Todo t1 --field title=Milk --field priority=3
              belfry trigger update Todo t1 --field priority=5 --before priority=3
              belfry trigger delete Todo t1 --before priority=5 --origin-device alices-phone

            A field is name=value. The value is a number, true or false if it reads like one, and \
            else a text; name:type=value says which: \(FieldArgument.words).
            """)

    @Argument(
        help: "create, update or delete.", completion: .list(Word.all(ChangeOperation.self)),
        transform: Word.read)
    var operation: ChangeOperation
    @Argument(help: "The record type, for example Todo.")
    var recordType: String
    @Argument(help: "The record's name.")
    var recordName: String

    @Option(
        name: .shortAndLong, help: "A field of the record after the change; may be repeated.",
        transform: FieldArgument.read)
    var field: [FieldArgument] = []
    @Option(
        name: .shortAndLong,
        help: "A field as it was before; in an update, all others were as they are after it.",
        transform: FieldArgument.read)
    var before: [FieldArgument] = []
    @Flag(help: "The fields that are given are not all fields of the record.")
    var partial = false
    @Option(help: "A field to which the change gave another value, for a change without images.")
    var changedKey: [String] = []

    @Option(help: "The device that made the change, which is not notified.")
    var originDevice: String?
    @Option(help: "The user who made it.")
    var originUser: String?
    @Option(help: "Who may read the record; may be repeated (default: as the database says).")
    var reader: [String] = []

    @Option(
        help: "The database: public, private or shared (default: public, or private with --owner).",
        completion: .list(Word.all(DatabaseScope.self)), transform: Word.read)
    var database: DatabaseScope?
    @Option(help: "The user whose database it is.")
    var owner: String?
    @Option(help: "The zone (default: _defaultZone).")
    var zone: String?

    @OptionGroup var target: TriggerTarget

    func validate() throws {
        if operation == .delete, !field.isEmpty {
            throw ValidationError(
                "a deleted record has no fields: give its former fields with --before")
        }
        if operation == .create, !before.isEmpty {
            throw ValidationError("a created record had no fields before: leave out --before")
        }
    }

    func run() async throws {
        let body = body
        try await CommandFailure.told {
            let answer = try await target.post(body)
            print(
                target.json ? ShownText.json(answer.text) : ShownText.plain(Self.shown(answer)))
        }
    }

    /// The change in the relay's own format (docs/change-sources.md).
    var body: JSONValue {
        var change: JSONObject = [
            "operation": .string(operation.rawValue), "recordType": .string(recordType),
            "recordName": .string(recordName),
        ]
        let after = FieldArgument.fields(field)
        if operation != .delete { image(&change, "after", after) }
        if !before.isEmpty {
            let former = FieldArgument.fields(before)
            image(&change, "before", after.merging(former) { _, former in former })
        }
        change["zoneID"] = zone.map { .string($0) }
        change["database"] = database.map { .string($0.rawValue) }
        change["owner"] = owner.map { .string($0) }
        if !changedKey.isEmpty { change["changedKeys"] = .array(changedKey.map { .string($0) }) }
        if !reader.isEmpty { change["readers"] = .array(reader.map { .string($0) }) }
        if originDevice != nil || originUser != nil {
            var origin = JSONObject()
            origin["deviceID"] = originDevice.map { .string($0) }
            origin["userRecordName"] = originUser.map { .string($0) }
            change["origin"] = .object(origin)
        }
        return .object(change)
    }

    private func image(_ change: inout JSONObject, _ side: String, _ fields: RecordFields) {
        change[side] = .object(FieldValue.notation(fields: fields))
        if partial { change["\(side)Completeness"] = "partial" }
    }

    private static func shown(_ answer: JSONValue) -> String {
        guard case .object(let object) = answer, case .array(let results)? = object["results"],
            case .object(let result)? = results.first, case .string(let status)? = result["status"]
        else { return answer.text }
        var text = status
        if case .string(let position)? = result["position"] { text += " at position \(position)" }
        if case .string(let reason)? = result["reason"] { text += ": \(reason)" }
        return text
    }
}

/// Parses option values that are words of a type.
enum Word {
    static func read<Choice: RawRepresentable<String> & CaseIterable>(
        _ text: String
    ) throws -> Choice {
        guard let choice = Choice(rawValue: text) else {
            let words = all(Choice.self).joined(separator: ", ")
            throw ValidationError("\"\(text)\" is unknown; allowed are \(words)")
        }
        return choice
    }

    /// Returns the words of a type, for shell completion.
    static func all<Choice: RawRepresentable<String> & CaseIterable>(
        _ type: Choice.Type
    ) -> [String] {
        Choice.allCases.map(\.rawValue)
    }
}
