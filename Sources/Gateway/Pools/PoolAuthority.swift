import RelayModel

/// The credential with which a pool sends: a provider token that is renewed in time, or a
/// certificate.
struct PoolAuthority {
    /// The token for the `authorization` header, which is `nil` with a certificate.
    struct Proof {
        var token: ConcealedText?
        var generation: Int
    }

    /// The result of judging a refusal.
    struct Judgement {
        var reaction: GatewayReaction
        var remark: String?
        var trialAfter: Duration?
    }

    /// Why there is no token.
    enum Lack: Error, Sendable, Hashable {
        /// The signing key cannot sign.
        case key(ProviderTokenSigner.KeyError)
        /// The gateway takes no new token for this time.
        case minting(Duration)

        /// The cause as that of the end of an attempt.
        var cause: PushCause {
            switch self {
            case .key(let error): PushCause(error.description)
            case .minting(let wait):
                PushCause(
                    "the gateway has seen too many provider tokens",
                    detail: "trying again in \(wait.wholeMilliseconds) ms")
            }
        }
    }

    private let signer: ProviderTokenSigner?
    private let key: ProviderTokenRecord.Key?
    private var life = ProviderTokenLife()
    private var trial = CredentialTrial()
    private var hasAskedTokenStore = false

    /// Prepares `credential` for `environment`.
    ///
    /// - Throws: An error that says what is wrong with the signing key.
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

    /// Returns the proof for a request at `now`.
    ///
    /// Mints a token if necessary.
    mutating func proof(
        at now: Timestamp, _ context: GatewayContext
    ) throws(Lack) -> Proof {
        guard let signer, let key else { return Proof(token: nil, generation: 0) }
        recall(key, signer, at: now, context)
        switch life.step(at: now) {
        case .use(let record, let generation):
            return Proof(token: record.token, generation: generation)
        case .mint(let issuedAt):
            let record = ProviderTokenRecord(
                key: key, token: try Self.sign(with: signer, issuedAt), issuedAt: issuedAt)
            let generation = life.adopt(record, using: &context.generator)
            context.tokenStore.keep(record)
            context.observe(.mintedProviderToken(key))
            return Proof(token: record.token, generation: generation)
        case .wait(let moment):
            throw .minting(moment.duration(since: now))
        }
    }

    private static func sign(
        with signer: ProviderTokenSigner, _ issuedAt: Timestamp
    ) throws(Lack) -> ConcealedText {
        do {
            return try signer.sign(issuedAt: issuedAt)
        } catch {
            throw .key(error)
        }
    }

    /// Judges a refusal by `row` of a request that showed the token of `generation` on the
    /// connection with the number `connection`.
    mutating func judge(
        _ row: ReasonRow, generation: Int, connection: UInt64, _ context: GatewayContext
    ) -> Judgement {
        guard let key else {
            return Judgement(reaction: tried(row, connection, context))
        }
        switch row.reaction {
        case .renewProviderToken:
            return expired(row, key: key, generation: generation, connection, context)
        case .retry(_, .gateway) where row.reason == "TooManyProviderTokenUpdates":
            life.refuseAsTooMany(generation: generation, at: context.wallClock())
            return Judgement(reaction: row.reaction)
        default:
            return Judgement(reaction: tried(row, connection, context))
        }
    }

    private mutating func tried(
        _ row: ReasonRow, _ connection: UInt64, _ context: GatewayContext
    ) -> GatewayReaction {
        trial.judge(row, connection: connection, newest: context.newestConnection)
    }

    /// Notes that the gateway accepted a push with this credential.
    mutating func acquit() {
        trial.acquit()
    }

    private mutating func expired(
        _ row: ReasonRow, key: ProviderTokenRecord.Key, generation: Int, _ connection: UInt64,
        _ context: GatewayContext
    ) -> Judgement {
        switch life.refuseAsExpired(generation: generation, at: context.wallClock()) {
        case .alreadyRenewed, .renewing:
            return Judgement(reaction: row.reaction)
        case .tooYoung(let age):
            // A single machine of the gateway may be wrong, and a connection that refused a token
            // as expired goes on to do so. So the same token is tried on another connection first.
            let reaction = tried(row, connection, context)
            guard reaction != row.reaction else {
                return Judgement(reaction: .retryOnFreshConnection)
            }
            context.observe(.clockIsWrong(key, age: age))
            return Judgement(
                reaction: reaction,
                remark: "the token is \(age.components.seconds) s old by this machine's clock, "
                    + "which is probably slow: compare it with another one",
                trialAfter: trial.rest(after: row))
        }
    }

    private mutating func recall(
        _ key: ProviderTokenRecord.Key, _ signer: ProviderTokenSigner, at now: Timestamp,
        _ context: GatewayContext
    ) {
        guard !hasAskedTokenStore else { return }
        hasAskedTokenStore = true
        guard let record = context.tokenStore.load(key), record.key == key,
            signer.hasSigned(record.token)
        else { return }
        life.adopt(record, using: &context.generator)
        guard case .use = life.step(at: now) else { return }
        context.observe(.reusedProviderToken(key, age: now.duration(since: record.issuedAt)))
    }
}
