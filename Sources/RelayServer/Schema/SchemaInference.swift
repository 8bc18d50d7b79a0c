import RelayModel

/// Extends the schema of a development container by the records that arrive, as CloudKit does; in
/// production, everything unknown is refused.
struct SchemaInference {
    private let environment: ContainerEnvironment
    private let known: ContainerSchema
    private var learned: [RecordType: RecordTypeDefinition] = [:]
    /// The number of fields that may still be learned.
    private var room = 0

    init(_ schema: ContainerSchema, environment: ContainerEnvironment) {
        known = schema
        self.environment = environment
        guard environment == .development else { return }
        let count = schema.recordTypes.values.reduce(0) { $0 + $1.fields.count }
        let most = Limits.maximumLearnedFields
        room = max(0, min(most.request, most.container - count))
    }

    /// The types and fields that are not in the schema yet.
    var additions: [RecordTypeDefinition] { learned.values.sorted { $0.name < $1.name } }

    /// Returns the known definition of a type, with what has been learned.
    func definition(of type: RecordType) -> RecordTypeDefinition? {
        guard var definition = known.recordTypes[type] else { return learned[type] }
        if let more = learned[type] {
            definition.fields.merge(more.fields) { known, _ in known }
        }
        return definition
    }

    /// Admits one record that a client writes here, and learns its type and fields.
    ///
    /// `emptyLists` has the types that the client states for lists whose values do not show them.
    ///
    /// - Throws: 400 with CloudKit's reason for what production does not know; 403 for a type that
    ///   is not kept here.
    mutating func admit(
        _ type: RecordType, fields: RecordFields, emptyLists: [String: SchemaFieldType] = [:]
    ) throws(APIError) -> RecordTypeDefinition {
        guard let definition = definition(of: type) else {
            try admitNew(type)
            try checkRoom(for: fields.count)
            learn(RecordTypeDefinition(type, isInferred: true), fields, emptyLists)
            return definition(of: type) ?? RecordTypeDefinition(type, isInferred: true)
        }
        guard definition.isKept else {
            throw APIError(
                .accessDenied,
                "clients cannot change records of type \(type): they are in the application's own "
                    + "database, and the schema does not set shadow for the type")
        }
        let unknown = fields.filter { !$0.value.isNull && definition.fields[$0.key] == nil }
        if environment == .production, let name = unknown.keys.min() {
            throw APIError(
                .badRequest,
                "Cannot create or modify field '\(name)' in record '\(type)' in production schema")
        }
        for (name, value) in fields {
            try Self.check(value, name, in: definition)
        }
        guard definition.fields.count + unknown.count <= Limits.maximumFieldsPerRecord else {
            throw APIError(
                .quotaExceeded,
                "a record type may have at most \(Limits.maximumFieldsPerRecord) fields")
        }
        try checkRoom(for: unknown.count)
        learn(definition, unknown, emptyLists)
        return definition
    }

    private func checkRoom(for count: Int) throws(APIError) {
        guard count > room else { return }
        let most = Limits.maximumLearnedFields
        throw APIError(
            .quotaExceeded,
            "a development container can learn at most \(most.request) new fields from one "
                + "request, and can have at most \(most.container) fields in all")
    }

    /// Learns from a change that a source posted.
    ///
    /// The change is never refused, because the source's database is the truth. Its type is not
    /// kept until the schema says so.
    mutating func observe(_ change: RecordChange) {
        guard environment == .development, let fields = (change.after ?? change.before)?.fields
        else { return }
        let type = change.recordType
        let definition = definition(of: type)
        if definition == nil, count >= Limits.maximumRecordTypes { return }
        let room = Limits.maximumFieldsPerRecord - (definition?.fields.count ?? 0)
        let unknown = fields.filter {
            definition?.fields[$0.key] == nil && RecordTypeDefinition.isFieldName($0.key)
        }
        guard unknown.count <= min(room, self.room) else { return }
        learn(definition ?? RecordTypeDefinition(type, isKept: false, isInferred: true), unknown)
    }

    private var count: Int {
        known.recordTypes.count + learned.keys.count { known.recordTypes[$0] == nil }
    }

    private func admitNew(_ type: RecordType) throws(APIError) {
        guard environment == .development else {
            throw APIError(.badRequest, "Cannot create new type \(type) in production schema")
        }
        guard RecordFieldReading.isClientName(type.rawValue) else {
            throw APIError(
                .badRequest,
                "recordType: \"\(type.rawValue.shortened)\" must be a letter followed by letters, "
                    + "digits and underscores")
        }
        guard count < Limits.maximumRecordTypes else {
            throw APIError(
                .quotaExceeded, "a container has at most \(Limits.maximumRecordTypes) record types")
        }
    }

    private mutating func learn(
        _ definition: RecordTypeDefinition, _ fields: RecordFields,
        _ emptyLists: [String: SchemaFieldType] = [:]
    ) {
        var more = learned[definition.name] ?? definition
        if learned[definition.name] == nil { more.fields = [:] }
        for (name, value) in fields {
            guard let type = SchemaFieldType(of: value) ?? emptyLists[name] else { continue }
            more.fields[name] = FieldDefinition(type, uses: Self.uses(of: type))
            room -= 1
        }
        guard known.recordTypes[definition.name] == nil || !more.fields.isEmpty else { return }
        learned[definition.name] = more
    }

    /// Returns the uses of a learned field: all possible ones, so that a developer can query at
    /// once.
    private static func uses(of type: SchemaFieldType) -> FieldUses {
        switch type.element {
        case .asset, .bytes, .map, .any: []
        case .string:
            type.isList ? [.queryable, .searchable] : [.queryable, .sortable, .searchable]
        default: type.isList ? [.queryable] : [.queryable, .sortable]
        }
    }

    private static func check(
        _ value: FieldValue, _ name: String, in definition: RecordTypeDefinition
    ) throws(APIError) {
        guard let known = definition.fields[name]?.type, let type = SchemaFieldType(of: value),
            known != type, known.element != .any
        else { return }
        // A whole number in a field of doubles has been parsed as a double already.
        throw APIError(
            .badRequest,
            "invalid attempt to set value type \(type) for field '\(name)' for type "
                + "'\(definition.name)', defined to be: \(known)")
    }
}
