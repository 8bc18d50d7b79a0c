import Testing

@testable import Delivery

/// Latency quantiles that are exact enough for a display.
@Suite struct LatencyBucketsTests {
    @Test func `a quantile is at most a quarter above the measured latency`() throws {
        for micros in [1, 3, 4, 7, 8, 100, 999, 12_345, 1_000_000, 60_000_000] {
            var buckets = LatencyBuckets()
            buckets.add(.microseconds(micros))
            let shown = try #require(buckets.quantile(0.5)) * 1_000_000
            #expect(shown > Double(micros) && shown <= max(Double(micros) * 1.25, 8) + 1)
        }
    }

    @Test func `quantiles are of the latencies since the last reading`() throws {
        var buckets = LatencyBuckets()
        #expect(buckets.quantile(0.5) == nil)
        for _ in 0..<1000 { buckets.add(.milliseconds(900)) }
        let before = buckets
        #expect(buckets.since(before).quantile(0.5) == nil)
        for _ in 0..<99 { buckets.add(.milliseconds(10)) }
        buckets.add(.milliseconds(500))
        let later = buckets.since(before)
        #expect(try #require(later.quantile(0.5)) < 0.013)
        #expect(try #require(later.quantile(0.99)) < 0.013)
        #expect(try #require(later.quantile(1)) > 0.5)
    }

    @Test func `latencies beyond every bucket are counted too`() {
        var buckets = LatencyBuckets()
        buckets.add(.seconds(-5))
        buckets.add(.zero)
        buckets.add(.seconds(1 << 40))
        #expect(buckets.quantile(1) != nil)
    }
}
