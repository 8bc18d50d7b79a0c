import Live
import RelayModel
import Storage

extension LiveSession {
    /// Sends a result once, or a refusal.
    func get(_ reader: JSONReader, _ identity: LiveIdentity, counts: Bool) async {
        do {
            if counts { try await access.use(identity) }
            let id = try reader.require("id", try reader.string("id"))
            guard id.utf8.count <= 255 else {
                throw reader.failure("id", "must be at most 255 bytes")
            }
            let json = try reader.require("query", reader.value("query"))
            let reading = try await access.reading(for: identity)
            let query = try await access.turnstile.compiling(
                for: identity.user, of: identity.settings.key
            ) { try await reading.declared(json, path: "query").query }
            guard query.query.kind == .result else {
                throw reader.failure(
                    "query",
                    "only a result can be got once; declare changes and notifications in a set")
            }
            guard query.query.beginning == .current else {
                throw reader.failure(
                    "query", "a get returns the current records, which \"initial\" leaves out")
            }
            try await access.engine.get(id, query, under: reading.version, for: number)
        } catch {
            refuse(reader.value("id"), ErrorMapping(error).apiError)
        }
    }

    /// Answers a fence once everything that was durable before has been sent, or refuses it.
    func fence(_ reader: JSONReader) async {
        do {
            let id = try reader.require("id", try reader.string("id"))
            try await access.engine.fence(id, of: number)
        } catch {
            refuse(reader.value("id"), ErrorMapping(error).apiError)
        }
    }

    /// Sends the refusal of the request with this name.
    func refuse(_ id: JSONValue?, _ error: APIError) {
        var object: JSONObject = ["type": "refused"]
        object["id"] = id
        object.members += error.json(uuid: head.uuid).members
        hub.post([.send(number, [LiveFrame(object)])])
    }
}
