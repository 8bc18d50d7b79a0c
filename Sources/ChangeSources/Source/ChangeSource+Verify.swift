package import RelayModel

extension ChangeSource {
    /// Verifies that `request` comes from this source, at the time that it says.
    ///
    /// It reads headers and raw bytes only, so that nothing is parsed before it is believed. The
    /// scheme is the source's own; nothing in the request can choose another.
    ///
    /// - Throws: ``VerificationError`` that names the part that failed.
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

    /// Refuses an event in binary mode whose attributes the signature does not cover, or covers so
    /// that bytes could move from one to the next: whoever copied it could send it again as a
    /// deletion, or as an event that is new.
    private func checkCoverage(_ request: WebhookRequest) throws(VerificationError) {
        guard isEventInBinaryMode(request), let covered = verification.scheme.coveredHeaders
        else { return }
        for name in request.headers.names
        where name.hasPrefix(Self.attributePrefix) && !covered.contains(name.lowercased()) {
            throw .unsignedHeader(name)
        }
        if let seam { throw .movableHeader(reason: "parts[\(seam.second)]: \(seam.reason)") }
    }

    /// Whether the attributes of an event are headers.
    ///
    /// A body that says to be an event is one, and headers may repeat its attributes (CloudEvents'
    /// HTTP binding, 3.2.3). Where a signature covers those headers they are what was signed.
    func isEventInBinaryMode(_ request: WebhookRequest) -> Bool {
        let version = "ce-specversion"
        guard preset == .cloudevents, request.headers[version] != nil else { return false }
        if verification.scheme.coveredHeaders?.contains(version) == true { return true }
        return !request.headers.announceEvent
    }

    /// Two neighbours of the signature's parts between which bytes of an event's attributes could
    /// move; `nil` where the signature covers none, and where it is no signature over parts.
    private var seam: SignatureSeam? {
        guard preset == .cloudevents, case .signature(let recipe) = verification.scheme else {
            return nil
        }
        return recipe.seam(ofHeaders: Self.attributePrefix)
    }

    /// How the headers begin that hold an event's attributes in binary mode.
    private static let attributePrefix = "ce-"

    /// Refuses a recipe under which bytes could move between an event's attributes.
    ///
    /// Only whoever saves a source is told so: one that was saved before is read still, and is
    /// believed in structured mode.
    ///
    /// - Throws: ``RelayModel/JSONContractError`` that names the part and what is allowed.
    package func checkSeams() throws(JSONContractError) {
        guard let seam else { return }
        throw JSONContractError(
            path: "verification.parts[\(seam.second)]", reason: seam.reason)
    }

    /// Refuses a scheme by which no sender could prove itself; one that was saved before is read
    /// still.
    ///
    /// - Throws: ``RelayModel/JSONContractError`` that names the member and what is allowed.
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
                reason: "must be the whole URL that the sender has, with https:// or http://")
        }
    }

    /// Looks whether a webhook can be this source's, as far as that shows without its body.
    ///
    /// - Returns: whether nothing is left to be proven by the body.
    /// - Throws: ``VerificationError`` for whatever no body makes good.
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
