import CoreMetrics
import Testing

@testable import RelayServer

@Suite struct PrometheusMetricsTests {
    @Test func `counters, gauges and histograms are rendered in order`() {
        let metrics = PrometheusMetrics()
        let counter = metrics.makeCounter(label: "b.count-total", dimensions: [("to", "a\"\\\n")])
        counter.increment(by: 2)
        metrics.makeFloatingPointCounter(label: "b.count-total", dimensions: []).increment(by: 0.5)
        metrics.makeMeter(label: "a_gauge", dimensions: [("z", "1"), ("a", "2")]).set(-1.0)
        let timer = metrics.makeTimer(label: "c_seconds", dimensions: [])
        timer.recordNanoseconds(1_500_000)
        timer.recordNanoseconds(120_000_000_000)
        let lines = metrics.render().split(separator: "\n").map(String.init)
        #expect(
            lines.prefix(5) == [
                "# TYPE a_gauge gauge", #"a_gauge{a="2",z="1"} -1"#,
                "# TYPE b_count_total counter", "b_count_total 0.5",
                #"b_count_total{to="a\"\\\n"} 2"#,
            ])
        #expect(lines.contains(#"c_seconds_bucket{le="0.001"} 0"#))
        #expect(lines.contains(#"c_seconds_bucket{le="0.0025"} 1"#))
        #expect(lines.contains(#"c_seconds_bucket{le="60"} 1"#))
        #expect(lines.contains(#"c_seconds_bucket{le="+Inf"} 2"#))
        #expect(lines.contains("c_seconds_sum 120.0015"))
        #expect(lines.contains("c_seconds_count 2"))
    }

    @Test func `a number that changes while it is shown ends with its last value`() {
        let metrics = PrometheusMetrics()
        let gauge = Gauge(label: "a_gauge", dimensions: [], factory: metrics)
        // Simulates another thread that changes and shows the number between the first reading and
        // its showing.
        var numbers = [1, 0, 0, 0]
        gauge.show { numbers.removeFirst() }
        #expect(metrics.render() == "# TYPE a_gauge gauge\na_gauge 0\n")
    }

    @Test func `a clock that is set back does not decrease a sum`() {
        let metrics = PrometheusMetrics()
        let timer = metrics.makeTimer(label: "c_seconds", dimensions: [])
        timer.recordNanoseconds(2_000_000_000)
        timer.recordNanoseconds(-3_600_000_000_000)
        let lines = metrics.render().split(separator: "\n").map(String.init)
        #expect(lines.contains("c_seconds_sum 2"))
        #expect(lines.contains("c_seconds_count 2"))
    }

    @Test func `gauges can be removed, and later ones are shown`() {
        let metrics = PrometheusMetrics(maximumSeries: 2)
        metrics.makeCounter(label: "n", dimensions: []).increment(by: 1)
        let before = metrics.makeMeter(label: "a_gauge", dimensions: [])
        before.set(Int64(1))
        metrics.forgetGauges()
        before.set(Int64(2))
        #expect(metrics.render() == "# TYPE n counter\nn 1\n")
        metrics.makeMeter(label: "b_gauge", dimensions: []).set(Int64(3))
        #expect(metrics.render() == "# TYPE b_gauge gauge\nb_gauge 3\n# TYPE n counter\nn 1\n")
    }

    @Test func `the same name and labels are the same series`() {
        let metrics = PrometheusMetrics()
        for _ in 0..<3 {
            metrics.makeCounter(label: "n", dimensions: [("b", "2"), ("a", "1")]).increment(by: 1)
            metrics.makeCounter(label: "n", dimensions: [("a", "1"), ("b", "2")]).increment(by: 1)
        }
        #expect(metrics.render() == "# TYPE n counter\nn{a=\"1\",b=\"2\"} 6\n")
    }

    @Test func `hostile labels cannot fill the memory`() {
        let metrics = PrometheusMetrics(maximumSeries: 10)
        for number in 0..<100 {
            metrics.makeCounter(label: "n", dimensions: [("x", "\(number)")]).increment(by: 1)
        }
        #expect(metrics.render().split(separator: "\n").count == 11)
    }

    @Test func `many containers use up no room for the relay's own series`() {
        let metrics = PrometheusMetrics(maximumSeries: 10)
        for number in 0..<100 {
            let container = [("container", "c\(number)"), ("environment", "production")]
            metrics.makeMeter(label: "n", dimensions: container).set(Int64(1))
        }
        metrics.makeCounter(label: "alarms", dimensions: []).increment(by: 1)
        #expect(metrics.render().contains("alarms 1\n"))
        #expect(metrics.render().split(separator: "\n").count == 13)
        // The relay's own series do not use up the room of the containers', and forgotten series
        // free it.
        for number in 0..<100 {
            metrics.makeCounter(label: "m", dimensions: [("x", "\(number)")]).increment(by: 1)
        }
        metrics.forgetGauges()
        let container = [("container", "last"), ("environment", "production")]
        metrics.makeMeter(label: "n", dimensions: container).set(Int64(1))
        #expect(metrics.render().contains("container=\"last\""))
    }

    @Test func `a metric of the relay has a description`() {
        let metrics = PrometheusMetrics()
        metrics.makeCounter(label: "belfry_matches_total", dimensions: []).increment(by: 1)
        let lines = metrics.render().split(separator: "\n").map(String.init)
        #expect(
            lines == [
                "# HELP belfry_matches_total subscriptions that changes fired",
                "# TYPE belfry_matches_total counter", "belfry_matches_total 1",
            ])
        for (name, text) in MetricHelp.texts {
            #expect(name.hasPrefix("belfry_") && !text.isEmpty && !text.contains("\\"), "\(name)")
            #expect(text.first?.isNumber == false, "\(name)")
        }
    }
}
