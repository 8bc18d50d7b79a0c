import ChangeSources
import Live
import Logging
import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// Finds warnings about a subscription that may be saved, but will probably not do what was meant.
///
/// A warning is based only on what was seen; without any evidence there is none.
struct SubscriptionWarnings {
    let schema: ContainerSchema
    let sample: SeenChanges.Sample
    /// The change sources of the container.
    let sources: [ChangeSource]
    /// The audience of the warnings.
    let audience: SeenChanges.Audience

    /// The maximum number of warnings in one answer; further ones add no information.
    private static let most = 20

    /// Returns the warnings about `subscription`.
    func warnings(of subscription: Subscription) -> [PredicateWarning] {
        var search = WordSearch()
        return warnings(of: subscription, &search)
    }

    /// Returns the warnings about `subscription`, one of several in a request.
    func warnings(
        of subscription: Subscription, _ search: inout WordSearch
    ) -> [PredicateWarning] {
        guard case .query(let query, _) = subscription.scope,
            let predicate = try? query.recordPredicate()
        else {
            guard audience == .operators || subscription.database == .public else { return [] }
            return subscription.recordType.map { unknownType($0, &search) } ?? []
        }
        let type = query.recordType
        var warnings: [PredicateWarning] = []
        // Users get no such warnings about private and shared databases.
        if audience == .operators || subscription.database == .public {
            warnings = unknownType(type, &search)
            if warnings.isEmpty {
                let fields = knownFields(of: type)
                warnings = unseen(predicate, in: type, fields, &search)
                warnings += unnamed(subscription, type, fields, &search)
            }
        }
        // These are for every audience: saving checks against the declared schema, too.
        let written = schema.recordTypes[type].flatMap { $0.isInferred ? nil : RecordSchema($0) }
        warnings += predicate.ownWarnings(by: written, in: query.form ?? .predicate)
        warnings += Self.ofOneMoment(subscription, predicate)
        warnings += withoutBefore(subscription, predicate, type)
        warnings += withoutComparison(subscription, type)
        return Array(warnings.prefix(Self.most))
    }

    /// The names of each record type's fields, from the schema and from recent changes.
    var fieldNames: [RecordType: Set<String>] {
        var names = schema.recordTypes.mapValues { Set($0.fields.keys) }
        for (type, seen) in sample.types { names[type, default: []].formUnion(seen.fields.keys) }
        return names
    }

    // MARK: The record type

    /// Returns the definition of a record type, if the audience may know it.
    ///
    /// An inferred definition may come from records that not everybody may read, so users get only
    /// declared ones.
    private func definition(of type: RecordType) -> RecordTypeDefinition? {
        guard let definition = schema.recordTypes[type] else { return nil }
        return audience == .operators || !definition.isInferred ? definition : nil
    }

    private func unknownType(
        _ type: RecordType, _ search: inout WordSearch
    ) -> [PredicateWarning] {
        let types = schema.recordTypes.keys.compactMap(definition)
            .filter { audience == .operators || !$0.isPersonal || $0.name == type }
        let known = Set(types.map(\.name)).union(sample.types.keys)
        guard !known.isEmpty, !known.contains(type) else { return [] }
        let hint = search.hint(for: type.rawValue, among: known.map(\.rawValue).sorted())
        let seen =
            sample.changes == 0
            ? "" : ", and none of the last \(Counted.text(sample.changes, "change")) had it"
        return [
            PredicateWarning(
                .unknownRecordType, "the schema has no record type \(type)\(seen)",
                hint: hint)
        ]
    }

    // MARK: Fields

    /// Returns a type's known fields, from the schema and from recent changes.
    private func fields(of type: RecordType) -> [String: RecordSchema.Field] {
        var fields: [String: RecordSchema.Field] = [:]
        let definition = definition(of: type)
        if let definition { fields = RecordSchema(definition).fields }
        for (name, field) in sample.types[type]?.fields ?? [:] {
            // If values of two kinds came, neither is certain. Under a declared schema the kind
            // that came is, because the declaration does not turn a text that comes into a date.
            let isSure =
                fields[name] == nil || fields[name]?.type == field.type
                || definition?.isInferred == false
            fields[name] = RecordSchema.Field(isSure ? field.type : .mixed)
        }
        // Whether a field is queryable is not checked here.
        return fields.mapValues { RecordSchema.Field($0.type) }
    }

    /// Returns the fields of a type if the audience may know them and all are known; otherwise
    /// none.
    private func knownFields(of type: RecordType) -> [String: RecordSchema.Field] {
        let definition = definition(of: type)
        // A field may exist although no partial image has it.
        let isKnown = definition != nil || sample.types[type]?.isWhole == true
        guard isKnown, audience == .operators || definition?.isPersonal != true else { return [:] }
        return fields(of: type)
    }

    /// Returns warnings about fields that no record had, and whose change the subscription waits
    /// for or whose value its push shows.
    private func unnamed(
        _ subscription: Subscription, _ type: RecordType,
        _ fields: [String: RecordSchema.Field], _ search: inout WordSearch
    ) -> [PredicateWarning] {
        guard !fields.isEmpty else { return [] }
        let names = fields.keys.sorted()
        let places = [("changedKeys", subscription.changedKeys)] + subscription.shownFields
        var warnings: [PredicateWarning] = []
        for (place, named) in places {
            for name in Set(named).sorted() where fields[name] == nil {
                guard warnings.count < Self.most else { return warnings }
                warnings.append(
                    PredicateWarning(
                        .unknownField,
                        "\(place): no known record of type \(type) had a field \(name)",
                        hint: search.hint(for: name, among: names)))
            }
        }
        return warnings
    }

    private func unseen(
        _ predicate: RecordPredicate, in type: RecordType,
        _ fields: [String: RecordSchema.Field], _ search: inout WordSearch
    ) -> [PredicateWarning] {
        guard !fields.isEmpty else { return [] }
        var told: Set<String> = []
        var warnings: [PredicateWarning] = []
        let names = fields.keys.sorted()
        for comparison in predicate.comparisons.prefix(Limits.maximumPredicateListElements) {
            // Finding the intended word takes a while, and these warnings suffice.
            guard warnings.count < Self.most else { break }
            let alone = RecordPredicate(.comparison(comparison))
            for name in (alone.fieldsRead ?? []).sorted()
            where fields[name] == nil && SystemField(named: name) == nil {
                guard told.insert(name).inserted else { continue }
                warnings.append(unknownField(name, comparison, type, names, &search))
            }
            do throws(PredicateError) {
                try alone.check(schema: RecordSchema(knownOnly: fields))
            } catch {
                // The sentence repeats the text, because a condition in JSON has no offsets to
                // point at.
                let text = alone.canonicalText.shortened
                warnings.append(
                    PredicateWarning(
                        .otherKind,
                        "judging by the values received so far: \(error.reason), in \(text)",
                        hint: error.hint,
                        at: SourceSpan(offset: error.offset, length: error.length)))
            }
        }
        return warnings
    }

    private func unknownField(
        _ name: String, _ comparison: RecordPredicate.Comparison, _ type: RecordType,
        _ known: [String], _ search: inout WordSearch
    ) -> PredicateWarning {
        var hint = search.hint(for: name, among: known + SystemField.typedNames)
        var span = comparison.span
        if Self.isField(name, comparison.left) { span = comparison.leftSpan }
        var values = [comparison.right]
        if case .list(let elements) = comparison.right { values = elements }
        if values.contains(where: { Self.isField(name, $0) }) {
            span = comparison.rightSpan
            hint = hint ?? "a word without quotes is a field name; write a text as \"\(name)\""
        }
        return PredicateWarning(
            .unknownField, "no known record of type \(type) had a field \(name)",
            hint: hint, at: span)
    }

    private static func isField(_ name: String, _ side: RecordPredicate.Expression) -> Bool {
        guard case .path(let path) = side else { return false }
        return path.components == [.member(name)]
    }

    // MARK: The record before

    /// Returns the source whose mapping names the type, or the container's only source.
    private func likelySource(of type: RecordType) -> ChangeSource? {
        sources.first { $0.names(type) } ?? (sources.count == 1 ? sources.first : nil)
    }

    /// Returns a warning if the subscription needs before images of updates, and none come.
    private func withoutBefore(
        _ subscription: Subscription, _ predicate: RecordPredicate, _ type: RecordType
    ) -> [PredicateWarning] {
        guard subscription.firesOn.contains(.update), subscription.firesWhen != .matches,
            schema.recordTypes[type]?.isKept != true
        else { return [] }
        let needed = predicate.fieldsRead ?? []
        let updates = sample.types[type]?.fieldsBeforeUpdates ?? []
        let reason: String
        if updates.isEmpty {
            guard let source = likelySource(of: type), source.preset.neverHasBeforeImages
            else { return [] }
            let name =
                audience == .operators ? "the source \(source.name)" : "the source of the records"
            reason =
                "\(name) sends updates of type \(type) without the record as it was before "
                + "(\(source.preset.rawValue) never sends it)"
        } else {
            guard updates.allSatisfy({ $0.map { !needed.isSubset(of: $0) || $0.isEmpty } ?? false })
            else { return [] }
            reason = Self.cameWithoutBefore(updates.count, type)
        }
        let word = subscription.firesWhen.rawValue
        return [Self.noBefore("firesWhen \"\(word)\" does not fire: \(reason)", type)]
    }

    /// Returns a warning if no update showed whether it changed one of `changedKeys`.
    private func withoutComparison(
        _ subscription: Subscription, _ type: RecordType
    ) -> [PredicateWarning] {
        // The warning about firesWhen says as much.
        guard subscription.firesOn.contains(.update), subscription.firesWhen == .matches,
            !subscription.changedKeys.isEmpty, schema.recordTypes[type]?.isKept != true
        else { return [] }
        let updates = sample.types[type]?.fieldsCompared ?? []
        guard !updates.isEmpty,
            updates.allSatisfy({ $0?.isDisjoint(with: subscription.changedKeys) ?? false })
        else { return [] }
        let reason =
            Self.cameWithoutBefore(updates.count, type)
            + ", and without a list of the fields that changed"
        return [Self.noBefore("changedKeys lets no update fire: \(reason)", type)]
    }

    private static func cameWithoutBefore(_ updates: Int, _ type: RecordType) -> String {
        (updates == 1
            ? "the last update of type \(type) came"
            : "the last \(updates) updates of type \(type) all came")
            + " without the record as it was before"
    }

    private static func noBefore(_ reason: String, _ type: RecordType) -> PredicateWarning {
        PredicateWarning(
            .noBeforeImage, reason,
            hint: "let the relay keep the records of the type (belfry schema keep \(type)), or "
                + "let the source send the row before the change too")
    }
}

private extension Subscription {
    /// The fields whose values a push shows, by the member that names them.
    var shownFields: [(String, [String])] {
        let info = notificationInfo
        let whole = "notificationInfo"
        let titles = info.titleNames
        var shown = [
            ("\(whole).alertLocalizationArgs", info.alertLocalizationArgs),
            ("\(whole).\(titles.titleArguments)", info.titleLocalizationArgs),
            ("\(whole).\(titles.subtitleArguments)", info.subtitleLocalizationArgs),
            ("\(whole).\(info.desiredKeysName.rawValue)", info.desiredKeys),
        ]
        if let digest = kindness.digest {
            shown += [
                ("digest.title", digest.title?.fields ?? []),
                ("digest.alertBody", digest.alertBody?.fields ?? []),
                (
                    "digest.alertLocalizationArgs",
                    digest.alertLocalizationArgs.flatMap(\.fields)
                ),
            ]
        }
        return shown
    }
}

private extension RecordTypeDefinition {
    /// Whether each record can be read only by its creator, or by nobody.
    var isPersonal: Bool { readGrant.isPersonal }
}

extension ChangeSource {
    /// Returns whether the mapping says that changes of `type` come from this source.
    func names(_ type: RecordType) -> Bool {
        if mapping.recordTypes.values.contains(type) { return true }
        if case .constant(let table)? = mapping.table { return table == type.rawValue }
        return false
    }
}

/// The sources of knowledge about a container's records.
struct SubscriptionKnowledge: Sendable {
    let shadow: any Shadow
    let sources: any SourceRegistry
    /// The decoded change sources; a container's definitions may have megabytes.
    let decoded: SourceMemory
    let seen: SeenChanges
    let logger: Logger

    /// Returns the warnings about each of `edits`, in order.
    ///
    /// The edits have been saved already, so an error here must not refuse anything.
    func warnings(
        of edits: [SubscriptionEdit], at now: Timestamp
    ) async -> [[PredicateWarning]] {
        let saved = edits.map { edit -> Subscription? in
            switch edit {
            case .create(let subscription), .update(let subscription): subscription
            case .delete: nil
            }
        }
        guard let container = saved.lazy.compactMap({ $0?.container }).first else { return [] }
        do {
            let known = try await known(of: container, for: .users, at: now)
            var search = WordSearch()
            return saved.map { subscription in
                subscription.map { known.warnings(of: $0, &search) } ?? []
            }
        } catch {
            logger.warning(
                "could not check for doubtful conditions", metadata: ["reason": "\(error)"])
            return []
        }
    }

    /// Returns what is known about the records of `container`.
    func known(
        of container: ContainerKey, for audience: SeenChanges.Audience, at now: Timestamp
    ) async throws -> SubscriptionWarnings {
        let stored = try await sources.sources(of: container)
        return SubscriptionWarnings(
            schema: try await shadow.schema(of: container),
            sample: try await seen.sample(of: container, for: audience, at: now),
            sources: stored.compactMap { try? decoded.source($0, among: stored) },
            audience: audience)
    }
}
