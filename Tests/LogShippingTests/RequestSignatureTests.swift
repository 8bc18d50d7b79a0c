import RelayModel
import Testing

@testable import LogShipping

/// Signatures of requests, against the examples in S3's documentation.
///
/// See https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html.
@Suite struct RequestSignatureTests {
    struct Example: Sendable, CustomTestStringConvertible {
        let method: String
        let path: String
        var query: [(name: String, value: String)] = []
        var headers: [(name: String, value: String)] = []
        var body = ""
        let signature: String

        var testDescription: String { "\(method) \(path)" }
    }

    @Test(arguments: [
        Example(
            method: "GET", path: "/test.txt", headers: [("range", "bytes=0-9")],
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        Example(
            method: "PUT", path: "/test%24file.text",
            headers: [
                ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ], body: "Welcome to Amazon S3.",
            signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        Example(
            method: "GET", path: "/", query: [("lifecycle", "")],
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        Example(
            method: "GET", path: "/", query: [("max-keys", "2"), ("prefix", "J")],
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ])
    func `a request is signed like the examples in S3's documentation`(_ example: Example) throws {
        let credentials = BucketCredentials(
            accessKeyID: "AKIAIOSFODNN7EXAMPLE",
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
        let headers = RequestSignature(
            method: example.method, host: "examplebucket.s3.amazonaws.com", path: example.path,
            query: example.query, headers: example.headers,
            bodyHash: RequestSignature.hash(example.body), region: "us-east-1",
            moment: try #require(Timestamp(iso8601: "2013-05-24T00:00:00Z"))
        ).signed(with: credentials)
        let authorization = headers.first { $0.name == "authorization" }?.value ?? ""
        #expect(authorization.hasSuffix("Signature=\(example.signature)"), "\(authorization)")
        // An HTTP client leaves the default port out of the `Host` header, so the signature must
        // leave it out too.
        #expect(headers.first { $0.name == "host" }?.value == "examplebucket.s3.amazonaws.com")
    }

    @Test func `a path is percent-encoded once and keeps its slashes`() {
        #expect(PercentEncoding.encode("a b/ü", isPath: true) == "a%20b/%C3%BC")
        #expect(PercentEncoding.encode("a/b") == "a%2Fb")
    }

    @Test func `credentials are read in the form of the AWS tools`() {
        let text = """
            # a comment
            [other]
            aws_access_key_id = X
            aws_secret_access_key = Y
            [default]
            aws_access_key_id=AKIA
            aws_secret_access_key = a=b/c+
            aws_session_token = t
            """
        #expect(
            BucketCredentials(file: text)
                == BucketCredentials(accessKeyID: "AKIA", secret: "a=b/c+", sessionToken: "t"))
        #expect(BucketCredentials(file: "[default]\nregion = x\n") == nil)
    }
}
