import Storage
import Testing

@testable import RelayServer

/// How long things are kept, as answers about what is gone report it.
@Suite struct RetentionToldTests {
    @Test func `the size limit is named unless the oldest data has reached its age`() {
        var retention = Retention()
        retention.logAge = .seconds(168 * 3600)
        retention.logBytes = 1 << 20
        let both =
            ", as the log is kept up to 1 MB (retention.logMegabytes) and for 168 h "
            + "(retention.logHours)"
        #expect(retention.logIsKept() == both)
        #expect(retention.logIsKept(oldest: .seconds(60)) == both)
        #expect(
            retention.logIsKept(oldest: .seconds(167 * 3600))
                == ", as the log is kept for 168 h (retention.logHours)")
        retention.logAge = nil
        #expect(
            retention.logIsKept(oldest: .seconds(60))
                == ", as the log is kept up to 1 MB (retention.logMegabytes)")
        retention.logBytes = nil
        #expect(retention.logIsKept() == "")
        #expect(
            retention.receiptsAreKept(oldest: .seconds(168 * 3600))
                == ", as receipts are kept for 168 h (retention.receiptHours)")
    }
}
