import ChangeSources
import Live
import Logging
import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// What is told of a subscription that may be saved and will probably not do what was meant.
///
/// It says what was seen and no more: where nothing was, it is silent.
struct SubscriptionWarnings {
    let schema: ContainerSchema
    let sample: SeenChanges.Sample
    /// The container's sources.
    let sources: [ChangeSource]
    /// Who is told.
    let audience: SeenChanges.Audience

    /// More of them say nothing new.
    private static let most = 20

    /// What is to be told of `subscription`.
    func warnings(of subscription: Subscription) -> [PredicateWarning] {
        guard case .query(let query, _) = subscription.scope,
            let predicate = try? query.recordPredicate()
        else {
            guard audience == .operators || subscription.database == .public else { return [] }
            return subscription.recordType.map { unknownType($0) } ?? []
        }
        let type = query.recordType
        var warnings: [PredicateWarning] = []
        // Of what lies in users' own databases users are told nothing.
        if audience == .operators || subscription.database == .public {
            warnings = unknownType(type)
            if warnings.isEmpty {
                let fields = knownFields(of: type)
                warnings = unseen(predicate, in: type, fields) + unshown(subscription, type, fields)
            }
        }
        // Saving checks by what was written down, too, whoever saves.
        let written = schema.recordTypes[type].flatMap { $0.isInferred ? nil : RecordSchema($0) }
        warnings += predicate.ownWarnings(by: written, in: query.form ?? .predicate)
        warnings += withoutBefore(subscription, predicate, type)
        return Array(warnings.prefix(Self.most))
    }

    /// The fields of each record type that the schema has, or that came of late.
    var fieldNames: [RecordType: Set<String>] {
        var names = schema.recordTypes.mapValues { Set($0.fields.keys) }
        for (type, seen) in sample.types { names[type, default: []].formUnion(seen.fields.keys) }
        return names
    }

    // MARK: The record type

    /// The definition of a record type that may be told: what development learned may come from
    /// records that not everybody may read, so users are told of what was declared.
    private func definition(of type: RecordType) -> RecordTypeDefinition? {
        guard let definition = schema.recordTypes[type] else { return nil }
        return audience == .operators || !definition.isInferred ? definition : nil
    }

    private func unknownType(_ type: RecordType) -> [PredicateWarning] {
        let types = schema.recordTypes.keys.compactMap(definition)
            .filter { audience == .operators || !$0.isPersonal || $0.name == type }
        let known = Set(types.map(\.name)).union(sample.types.keys)
        guard !known.isEmpty, !known.contains(type) else { return [] }
        let meant = NearestWord.to(type.rawValue, among: known.map(\.rawValue).sorted())
        let seen =
            sample.changes == 0
            ? "" : ", and none of the last \(Counted.text(sample.changes, "change")) had it"
        return [
            PredicateWarning(
                .unknownRecordType, "the schema has no record type \(type)\(seen)",
                hint: meant.map { "did you mean \($0)?" })
        ]
    }

    // MARK: Fields

    /// What is known of a type's fields: what the schema has, and what the last changes showed.
    private func fields(of type: RecordType) -> [String: RecordSchema.Field] {
        var fields: [String: RecordSchema.Field] = [:]
        let definition = definition(of: type)
        if let definition { fields = RecordSchema(definition).fields }
        for (name, field) in sample.types[type]?.fields ?? [:] {
            // Of two kinds that came neither is sure; what was written down turns no text that
            // comes into a date.
            let isSure =
                fields[name] == nil || fields[name]?.type == field.type
                || definition?.isInferred == false
            fields[name] = RecordSchema.Field(isSure ? field.type : .mixed)
        }
        // What may be indexed is another matter.
        return fields.mapValues { RecordSchema.Field($0.type) }
    }

    /// The fields of a type where they may be told, and all of them are known; else none.
    private func knownFields(of type: RecordType) -> [String: RecordSchema.Field] {
        let definition = definition(of: type)
        // A field that no partial image has may be there all the same.
        let isKnown = definition != nil || sample.types[type]?.isWhole == true
        guard isKnown, audience == .operators || definition?.isPersonal != true else { return [:] }
        return fields(of: type)
    }

    /// Fields that the push shows, and that no record had: their place in it stays empty.
    private func unshown(
        _ subscription: Subscription, _ type: RecordType, _ fields: [String: RecordSchema.Field]
    ) -> [PredicateWarning] {
        guard !fields.isEmpty else { return [] }
        let names = fields.keys.sorted()
        return subscription.shownFields.flatMap { place, shown in
            Set(shown).sorted().filter { fields[$0] == nil }.map { name in
                PredicateWarning(
                    .unknownField,
                    "\(place): no known record of type \(type) had a field \(name)",
                    hint: NearestWord.to(name, among: names).map { "did you mean \($0)?" })
            }
        }
    }

    private func unseen(
        _ predicate: RecordPredicate, in type: RecordType, _ fields: [String: RecordSchema.Field]
    ) -> [PredicateWarning] {
        guard !fields.isEmpty else { return [] }
        var told: Set<String> = []
        var warnings: [PredicateWarning] = []
        let names = fields.keys.sorted()
        for comparison in predicate.comparisons.prefix(Limits.maximumPredicateListElements) {
            // To look for a word that was meant takes a while, and these say enough.
            guard warnings.count < Self.most else { break }
            let alone = RecordPredicate(.comparison(comparison))
            for name in (alone.fieldsRead ?? []).sorted()
            where fields[name] == nil && SystemField(named: name) == nil {
                guard told.insert(name).inserted else { continue }
                warnings.append(unknownField(name, comparison, type, names))
            }
            do throws(PredicateError) {
                try alone.check(schema: RecordSchema(knownOnly: fields))
            } catch {
                // A form in JSON has no place, and who reads a sentence alone sees none.
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
        _ known: [String]
    ) -> PredicateWarning {
        var hint = NearestWord.to(name, among: known + SystemField.typedNames)
            .map { "did you mean \($0)?" }
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

    /// Whether what is asked of updates takes a before image, and none comes.
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
            guard let source = sources.first(where: { $0.names(type) }),
                source.preset.neverHasBeforeImages
            else { return [] }
            let name =
                audience == .operators ? "the source \(source.name)" : "the source of the records"
            reason =
                "\(name) sends updates of type \(type) without the record as it was before "
                + "(\(source.preset.rawValue) never sends it)"
        } else {
            guard updates.allSatisfy({ $0.map { !needed.isSubset(of: $0) || $0.isEmpty } ?? false })
            else { return [] }
            reason =
                (updates.count == 1
                    ? "the last update of type \(type) came"
                    : "the last \(updates.count) updates of type \(type) all came")
                + " without the record as it was before"
        }
        return [
            PredicateWarning(
                .noBeforeImage,
                "firesWhen \"\(subscription.firesWhen.rawValue)\" does not fire: \(reason)",
                hint: "let the relay keep the records of the type (belfry schema keep \(type)), or "
                    + "have the source send the row as it was before")
        ]
    }
}

private extension Subscription {
    /// The fields whose values a push has, by the place where they are named.
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
    /// Whether its records are their creators' own, or nobody's.
    var isPersonal: Bool { readGrant.isPersonal }
}

extension ChangeSource {
    /// Whether the mapping says that changes of `type` come from here.
    func names(_ type: RecordType) -> Bool {
        if mapping.recordTypes.values.contains(type) { return true }
        if case .constant(let table)? = mapping.table { return table == type.rawValue }
        return false
    }
}

/// Where what is known of records comes from.
struct SubscriptionKnowledge: Sendable {
    let shadow: any Shadow
    let sources: any SourceRegistry
    let seen: SeenChanges
    let logger: Logger

    /// What is told of each of `edits`, in order.
    ///
    /// They are saved already: what goes wrong here is no reason to refuse anything.
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
            return saved.map { $0.map(known.warnings) ?? [] }
        } catch {
            logger.warning(
                "could not look for doubtful conditions", metadata: ["reason": "\(error)"])
            return []
        }
    }

    /// What is known of the records of `container`.
    func known(
        of container: ContainerKey, for audience: SeenChanges.Audience, at now: Timestamp
    ) async throws -> SubscriptionWarnings {
        SubscriptionWarnings(
            schema: try await shadow.schema(of: container),
            sample: try await seen.sample(of: container, for: audience, at: now),
            sources: try await sources.sources(of: container).compactMap {
                try? $0.changeSource()
            }, audience: audience)
    }
}
