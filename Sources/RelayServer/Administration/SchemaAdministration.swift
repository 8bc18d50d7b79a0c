import RelayModel
import Storage

/// The schema of a container: show, import as JSON or as CloudKit's text, and what is kept.
struct SchemaAdministration: AdministrationTable {
    let registry: any ContainerRegistry
    let shadow: any Shadow
    /// Is told that what may be seen, and by whom, has changed.
    let revoked: @Sendable (Revocation) async -> Void

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.showSchema, respond: export),
            AdministrationRoute(.replaceSchema, respond: replace),
            AdministrationRoute(.keepRecords, respond: keep),
        ]
    }

    /// As JSON, or with `format=text` as `{"text": …}` in CloudKit's schema language.
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

    /// Puts a schema in the place of the one before: `{"recordTypes", "roles"}`, or `{"text"}`.
    ///
    /// A text does not say what is kept in the shadow: what was kept or not stays so, and what is
    /// new is kept.
    private func replace(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let body = try request.jsonBody()
        if let text = try body.string("text") {
            try body.allowOnly(["text"])
            let schema = try Self.schema(of: text)
            try await shadow.changeSchema(of: container, at: request.receivedAt) { before in
                schema.keepingMarks(of: before)
            }
        } else {
            let schema = try ContainerSchema(json: .object(body.object))
            try await shadow.replaceSchema(of: container, with: schema, at: request.receivedAt)
        }
        await revoked(.schema(container))
        return RelayAnswer(
            json: .object(try await shadow.schema(of: container).json))
    }

    private static func schema(of text: String) throws(APIError) -> ContainerSchema {
        do throws(SchemaTextError) {
            return try SchemaText.parse(text)
        } catch {
            throw APIError(
                .badRequest, "text: \(error)", details: ["line": .integer(Int64(error.line))])
        }
    }

    /// Says whether the records of one type are kept: `{"shadow": true}`.
    ///
    /// All else stays as it is, also what is changed or learned at the same time.
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
        try await shadow.changeSchema(of: container, at: request.receivedAt) { before in
            before.keeping(name, isKept)
        }
        await revoked(.schema(container))
        let type = try await shadow.schema(of: container).recordTypes[name]
        return RelayAnswer(json: .object(type?.json ?? [:]))
    }
}

private extension ContainerSchema {
    /// This schema, which was read from a text, with what that has no words for as it was.
    func keepingMarks(of before: ContainerSchema) -> ContainerSchema {
        var schema = self
        for (name, known) in before.recordTypes where !known.isInferred {
            schema.recordTypes[name]?.isKept = known.isKept
            schema.recordTypes[name]?.keepMarks(of: known)
        }
        return schema
    }

    /// This schema, with a type whose records are kept, or are not.
    func keeping(_ name: RecordType, _ isKept: Bool) -> ContainerSchema {
        var schema = self
        var type = recordTypes[name] ?? RecordTypeDefinition(name, isInferred: true)
        type.isKept = isKept
        schema.recordTypes[name] = type
        return schema
    }
}
