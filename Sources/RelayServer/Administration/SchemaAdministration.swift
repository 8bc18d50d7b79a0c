import RelayModel
import Storage

/// The schema of a container: show it, import it as JSON or as CloudKit's text, and set which
/// records are kept.
struct SchemaAdministration: AdministrationTable {
    let registry: any ContainerRegistry
    let shadow: any Shadow
    let turnstile: Turnstile
    /// Called when the records that users may see have changed.
    let revoked: @Sendable (Revocation) async -> Void

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.showSchema, respond: export),
            AdministrationRoute(.replaceSchema, respond: replace),
            AdministrationRoute(.keepRecords, respond: keep),
        ]
    }

    /// Shows the schema as JSON, or with `format=text` as `{"text": …}` in CloudKit's schema
    /// language.
    private func export(_ request: RelayRequest) async throws -> RelayAnswer {
        let schema = try await shadow.schema(of: try await registry.key(in: request))
        switch request.query["format"] {
        case nil, "json": return RelayAnswer(json: .object(schema.json))
        case "text": return RelayAnswer(json: ["text": .string(SchemaText.text(of: schema))])
        case let other?:
            throw APIError(
                .badRequest, "format: \"\(other.shortened)\" is unknown; allowed are json, text")
        }
    }

    /// Replaces the schema with `{"recordTypes", "roles"}` or `{"text"}`.
    ///
    /// A text cannot say which records the shadow keeps. A record type that exists stays as it was,
    /// and a new one is kept.
    private func replace(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let body = try request.jsonBody()
        if let text = try body.string("text") {
            try body.allowOnly(["text"])
            let schema = try Self.schema(of: text)
            try await change(container, at: request.receivedAt) { schema.keepingMarks(of: $0) }
        } else {
            let schema = try ContainerSchema(json: .object(body.object))
            try await change(container, at: request.receivedAt) { _ in schema }
        }
        return RelayAnswer(
            json: .object(try await shadow.schema(of: container).json))
    }

    private func change(
        _ container: ContainerKey, at now: Timestamp,
        _ change: @escaping @Sendable (ContainerSchema) -> ContainerSchema
    ) async throws {
        let known = try await shadow.schema(of: container)
        try turnstile.change(known, to: change(known), of: container)
        try await shadow.changeSchema(of: container, at: now, change)
        await revoked(.schema(container))
    }

    private static func schema(of text: String) throws(APIError) -> ContainerSchema {
        do throws(SchemaTextError) {
            return try SchemaText.parse(text)
        } catch {
            throw APIError(
                .badRequest, "text: \(error)", details: ["line": .integer(Int64(error.line))])
        }
    }

    /// Sets whether the records of one type are kept: `{"shadow": true}`.
    ///
    /// Everything else in the schema stays as it is, including what is changed or inferred at the
    /// same time.
    private func keep(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let name: RecordType = try request.identifier("recordType")
        let body = try AdministrationCall.keepRecords.body(of: request)
        let isKept = try body.require("shadow", try body.bool("shadow"))
        let schema = try await shadow.schema(of: container)
        guard
            schema.recordTypes[name] != nil
                || schema.recordTypes.count < Limits.maximumRecordTypes
        else {
            throw APIError(
                .quotaExceeded, "a container has at most \(Limits.maximumRecordTypes) record types")
        }
        try await change(container, at: request.receivedAt) { $0.keeping(name, isKept) }
        let type = try await shadow.schema(of: container).recordTypes[name]
        return RelayAnswer(json: .object(type?.json ?? [:]))
    }
}

private extension ContainerSchema {
    /// Returns this schema, which was parsed from a text, with the marks of `before` that a text
    /// cannot express.
    func keepingMarks(of before: ContainerSchema) -> ContainerSchema {
        var schema = self
        for (name, known) in before.recordTypes where !known.isInferred {
            schema.recordTypes[name]?.isKept = known.isKept
            schema.recordTypes[name]?.keepMarks(of: known)
        }
        return schema
    }

    /// Returns this schema with the records of one type kept or not kept.
    func keeping(_ name: RecordType, _ isKept: Bool) -> ContainerSchema {
        var schema = self
        var type = recordTypes[name] ?? RecordTypeDefinition(name, isInferred: true)
        type.isKept = isKept
        schema.recordTypes[name] = type
        return schema
    }
}
