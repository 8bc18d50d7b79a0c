import Testing

@testable import RelayServer

/// How metrics count requests.
@Suite struct RequestMeterTests {
    @Test func `unknown methods are counted as one`() {
        let metrics = PrometheusMetrics()
        let meter = RequestMeter(metrics)
        for method in ["GET", "PURGE", "PROPFIND", "M-SEARCH", "get"] {
            meter.record(405, method: method, path: "/readyz", .milliseconds(1))
        }
        let lines = metrics.render().split(separator: "\n").filter {
            $0.hasPrefix("belfry_http_requests_total{")
        }
        #expect(
            lines == [
                #"belfry_http_requests_total{method="GET",path="/readyz",status="405"} 1"#,
                #"belfry_http_requests_total{method="other",path="/readyz",status="405"} 4"#,
            ])
    }
}
