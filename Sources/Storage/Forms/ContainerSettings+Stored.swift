package import RelayModel

extension ProviderCertificate {
    /// The certificate in the form in which it is sealed and stored.
    package var storedForm: JSONValue {
        [
            "packing": .string(packing.rawValue), "bytes": .string(Base64.encode(bytes)),
            "passphrase": .string(passphrase),
        ]
    }

    /// Creates a certificate from its ``storedForm``.
    package init(storedForm json: JSONValue) throws(JSONContractError) {
        let reader = try JSONReader(json)
        self.init(
            packing: try reader.require("packing", try reader.choice("packing")),
            bytes: try reader.require(
                "bytes", try reader.string("bytes").flatMap { Base64.decode($0) }),
            passphrase: try reader.string("passphrase") ?? "")
    }
}

extension UserTokenSettings {
    /// The settings in the form in which they are sealed and stored.
    package var storedForm: JSONValue {
        var form: JSONObject = ["userClaim": .string(userClaim)]
        form["sharedSecret"] = sharedSecret.map { .string($0) }
        form["keySet"] = keySet.map { .string($0) }
        form["issuer"] = issuer.map { .string($0) }
        form["audience"] = audience.map { .string($0) }
        return .object(form)
    }

    /// Creates settings from their ``storedForm``.
    package init(storedForm json: JSONValue) throws(JSONContractError) {
        let reader = try JSONReader(json)
        self.init(
            sharedSecret: try reader.string("sharedSecret"), keySet: try reader.string("keySet"),
            issuer: try reader.string("issuer"), audience: try reader.string("audience"),
            userClaim: try reader.require("userClaim", try reader.string("userClaim")))
    }
}
