import RelayModel

/// In whose name a pool sends: a provider token that is renewed in time, or a certificate.
struct PoolAuthority {
    /// What stands behind `bearer`; `token` is `nil` with a certificate.
    struct Proof {
        var token: ConcealedText?
        var generation: Int
    }

    /// What a refused token comes to.
    struct Judgement {
        var reaction: GatewayReaction
        var remark: String?
    }

    private let signer: ProviderTokenSigner?
    private let key: ProviderTokenRecord.Key?
    private var life = ProviderTokenLife()
    private var trial = CredentialTrial()
    private var hasAskedKeeper = false

    /// Prepares `credential` for `environment`.
    ///
    /// - Throws: an error that says what is wrong with the signing key.
    init(
        _ credential: GatewayCredential, environment: GatewayEnvironment
    ) throws(ProviderTokenSigner.KeyError) {
        switch credential {
        case .signingKey(let signingKey):
            signer = try ProviderTokenSigner(signingKey)
            key = ProviderTokenRecord.Key(
                teamID: signingKey.teamID, keyID: signingKey.keyID, environment: environment)
        case .certificate:
            signer = nil
            key = nil
        }
    }

    /// The proof for a request at `now`; mints a token if it must.
    mutating func proof(
        at now: Timestamp, _ desk: GatewayDesk
    ) throws(ProviderTokenSigner.KeyError) -> Proof {
        guard let signer, let key else { return Proof(token: nil, generation: 0) }
        recall(key, at: now, desk)
        switch life.step(at: now) {
        case .use(let record, let generation):
            return Proof(token: record.token, generation: generation)
        case .mint(let issuedAt):
            let record = ProviderTokenRecord(
                key: key, token: try signer.sign(issuedAt: issuedAt), issuedAt: issuedAt)
            life.adopt(record, using: &desk.generator)
            desk.keeper.keep(record)
            desk.observe(.mintedProviderToken(key))
            return Proof(token: record.token, generation: life.generation)
        }
    }

    /// What a refusal by `row` comes to, of a request that showed the token of `generation` on the
    /// connection with the number `connection`.
    mutating func judge(
        _ row: ReasonRow, generation: Int, connection: UInt64, _ desk: GatewayDesk
    ) -> Judgement {
        guard let key else {
            return Judgement(reaction: trial.judge(row, connection: connection))
        }
        switch row.reaction {
        case .renewProviderToken:
            return expired(row, key: key, generation: generation, desk)
        case .retry(_, .gateway) where row.reason == "TooManyProviderTokenUpdates":
            life.refuseAsTooMany(generation: generation, at: desk.wallClock())
            return Judgement(reaction: row.reaction)
        default:
            return Judgement(reaction: trial.judge(row, connection: connection))
        }
    }

    /// The gateway accepted something in this name.
    mutating func acquit() {
        trial.acquit()
    }

    private mutating func expired(
        _ row: ReasonRow, key: ProviderTokenRecord.Key, generation: Int, _ desk: GatewayDesk
    ) -> Judgement {
        switch life.refuseAsExpired(generation: generation, at: desk.wallClock()) {
        case .alreadyRenewed, .renewing:
            return Judgement(reaction: row.reaction)
        case .clockIsWrong(let age):
            desk.observe(.clockIsWrong(key, age: age))
            return Judgement(
                reaction: row.whenRepeated ?? .pauseContainer,
                remark: "the token is \(age.components.seconds) s old by this machine's clock, "
                    + "which is probably slow: compare it with another one")
        }
    }

    private mutating func recall(
        _ key: ProviderTokenRecord.Key, at now: Timestamp, _ desk: GatewayDesk
    ) {
        guard !hasAskedKeeper else { return }
        hasAskedKeeper = true
        guard let record = desk.keeper.load(key), record.key == key else { return }
        life.adopt(record, using: &desk.generator)
        guard case .use = life.step(at: now) else { return }
        desk.observe(.reusedProviderToken(key, age: now.duration(since: record.issuedAt)))
    }
}
