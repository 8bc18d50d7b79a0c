import RelayModel

extension JSONObject {
    func merging(_ other: JSONObject) -> JSONObject {
        var merged = self
        for member in other.members { merged[member.name] = member.value }
        return merged
    }
}
