import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import RelayServer

/// How the keys of user tokens are recognised again.
@Suite struct UserKeyTests {
    @Test func `a key is recognised by its numbers whatever its set says of it`() throws {
        let known = JSONWebKeySet.identities(of: TestKeys.rsaKeySet)
        #expect(known.count == 1)
        let renamed = TestKeys.rsaKeySet.replacing("\"kid\"", with: "\"note\"")
        #expect(JSONWebKeySet.identities(of: renamed) == known)
        let keys = try JSONWebKeySet(text: TestKeys.rsaKeySet).keys
        #expect(keys.map(\.identity) == known)
        #expect(JSONWebKeySet.identities(of: "{}").isEmpty)
    }

    /// Verifying takes the square of the length, and a set may have fifty keys.
    @Test(arguments: [(255, false), (256, true), (512, true), (513, false), (1024, false)])
    func `keys for RS256 have 2048 to 4096 bits`(bytes: Int, isUsable: Bool) {
        let modulus = [0] + [UInt8](repeating: 0xFB, count: bytes)
        let text = #"{"keys":[{"kty":"RSA","e":"AQAB","n":"\#(Base64.encode(modulus))"}]}"#
        #expect(((try? JSONWebKeySet(text: text)) != nil) == isUsable)
        #expect(((try? JSONWebKeySet.inUse(text)) != nil) == isUsable)
    }

    @Test func `key sets whose texts are the same letters in other bytes are told apart`() throws {
        for kid in ["\u{E9}", "e\u{301}", "r"] {
            let text = TestKeys.rsaKeySet.replacing(#""kid":"r""#, with: #""kid":"\#(kid)""#)
            for _ in 1...2 {
                let known = try JSONWebKeySet.inUse(text).keys.map(\.id)
                #expect(known.map { $0.map { Array($0.utf8) } } == [Array(kid.utf8)])
            }
        }
    }

    @Test func `a session token names its key and does not reveal the secret`() throws {
        let settings = UserTokenSettings(sharedSecret: "one", keySet: TestKeys.rsaKeySet)
        let keys = settings.keyIdentities
        #expect(keys.count == 2 && Set(keys).count == 2)
        let secrets = [UInt8(1), 2].map { Array(repeating: $0, count: 32) }
        let marks = keys.flatMap { key in
            secrets.map { SessionToken.mark(of: key, secret: $0) }
        }
        #expect(Set(marks).count == 4)
        let session = try #require(UUIDBytes(bytes: Array(repeating: 7, count: 16)))
        let text = SessionToken.make(
            session: session, expiresAt: Fixtures.moment, container: Fixtures.container,
            secret: secrets[0], key: marks[0], chance: Array(repeating: 3, count: 8))
        let token = try #require(SessionToken(text))
        #expect(token.key == marks[0] && token.session == session)
        #expect(token.expiresAt.seconds == Fixtures.moment.seconds)
        #expect(token.isSigned(by: secrets[0], for: Fixtures.container))
        #expect(!token.isSigned(by: secrets[1], for: Fixtures.container))
        // An earlier form of the token has no key.
        let former = "s1_" + String(repeating: "A", count: 86)
        #expect(SessionToken(former) != nil && SessionToken(former)?.key == nil)
    }
}
