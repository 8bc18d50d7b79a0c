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

    /// Refuses an event in binary mode whose attributes the signature does not cover: whoever
    /// copied it could send it again as a deletion.
    private func checkCoverage(_ request: WebhookRequest) throws(VerificationError) {
        guard preset == .cloudevents, request.headers["ce-specversion"] != nil,
            let covered = verification.scheme.coveredHeaders
        else { return }
        for name in request.headers.names
        where name.hasPrefix("ce-") && !covered.contains(name.lowercased()) {
            throw .unsignedHeader(name)
        }
    }

    /// Looks whether a webhook can be this source's, as far as that shows without its body.
    ///
    /// - Throws: ``VerificationError`` for whatever no body makes good.
    package func recognize(_ head: WebhookRequest) throws(VerificationError) {
        do {
            try verify(head)
        } catch {
            switch error {
            case .signatureMismatch, .malformedToken, .tokenAlgorithm, .tokenMismatch: return
            default: throw error
            }
        }
    }
}
