package import RelayModel

extension ChangeSource {
    /// Verifies that `request` comes from this source, as of the time at which it arrived.
    ///
    /// Verification uses only headers and raw bytes, so nothing is parsed before the sender is
    /// authenticated. The scheme is configured for the source; nothing in the request can select
    /// another one.
    ///
    /// - Throws: ``VerificationError`` with the part that failed.
    @discardableResult
    package func verify(
        _ request: WebhookRequest
    ) throws(VerificationError) -> VerificationOutcome {
        if verification.scheme == .none { return VerificationOutcome(secretIndex: nil) }
        let live = verification.secrets.indices.filter {
            verification.secrets[$0].isLive(at: request.receivedAt)
        }
        guard !live.isEmpty else { throw .noLiveSecret }
        let secrets = live.map { verification.secrets[$0] }
        let fitting = try verification.scheme.fittingSecret(request, among: secrets)
        try checkCoverage(request)
        return VerificationOutcome(secretIndex: live[fitting])
    }

    /// Refuses an event in binary mode if the signature does not protect its attributes.
    ///
    /// An attribute may be unsigned, or bytes could move from one to the next. Then an attacker who
    /// copied the event could send it again as a deletion or as a new event.
    private func checkCoverage(_ request: WebhookRequest) throws(VerificationError) {
        guard isEventInBinaryMode(request), let covered = verification.scheme.coveredHeaders
        else { return }
        for name in request.headers.names
        where name.hasPrefix(Self.attributePrefix) && !covered.contains(name.lowercased()) {
            throw .unsignedHeader(name)
        }
        if let seam { throw .movableHeader(reason: "parts[\(seam.second)]: \(seam.reason)") }
    }

    /// Returns whether the attributes of an event are in headers.
    ///
    /// If the body declares itself to be an event, it is one, and headers may repeat its attributes
    /// (CloudEvents' HTTP binding, 3.2.3). But if a signature covers those headers, they are the
    /// signed attributes and count.
    func isEventInBinaryMode(_ request: WebhookRequest) -> Bool {
        let version = "ce-specversion"
        guard preset == .cloudevents, request.headers[version] != nil else { return false }
        if verification.scheme.coveredHeaders?.contains(version) == true { return true }
        return !request.headers.announceEvent
    }

    /// Two adjacent parts of the signature between which bytes of an event's attributes could move.
    ///
    /// It is `nil` if there are none, if the signature covers no attributes, or if the scheme is no
    /// signature over parts.
    private var seam: SignatureSeam? {
        guard preset == .cloudevents, case .signature(let recipe) = verification.scheme else {
            return nil
        }
        return recipe.seam(ofHeaders: Self.attributePrefix)
    }

    /// The prefix of the headers that hold an event's attributes in binary mode.
    private static let attributePrefix = "ce-"

    /// Refuses a recipe under which bytes could move between an event's attributes.
    ///
    /// It is checked only when a source is saved. A source from before this rule can still be
    /// loaded, and is accepted in structured mode.
    ///
    /// - Throws: ``RelayModel/JSONContractError`` with the invalid part and what is allowed.
    package func checkSeams() throws(JSONContractError) {
        guard let seam else { return }
        throw JSONContractError(
            path: "verification.parts[\(seam.second)]", reason: seam.reason)
    }

    /// Refuses a scheme that no sender could satisfy.
    ///
    /// A source from before this rule can still be loaded.
    ///
    /// - Throws: ``RelayModel/JSONContractError`` with the invalid member and what is allowed.
    func checkRecipe() throws(JSONContractError) {
        if let misfit = verification.scheme.misfit {
            throw JSONContractError(
                path: "verification.\(misfit.member)", reason: misfit.reason)
        }
        guard case .signature(let recipe) = verification.scheme else { return }
        guard let url = recipe.url?.lowercased() else { return }
        guard url.hasPrefix("https://") || url.hasPrefix("http://") else {
            throw JSONContractError(
                path: "verification.url",
                reason: "must be the full URL that the sender posts to, with https:// or http://")
        }
    }

    /// Checks whether a webhook can belong to this source, as far as its headers show.
    ///
    /// - Returns: `true` if verification succeeded; `false` if it depends on the body.
    /// - Throws: ``VerificationError`` for a failure that no body can repair.
    package func recognize(_ head: WebhookRequest) throws(VerificationError) -> Bool {
        do {
            try verify(head)
            return true
        } catch {
            switch error {
            case .signatureMismatch, .malformedToken, .tokenAlgorithm, .tokenMismatch:
                return false
            default: throw error
            }
        }
    }
}
