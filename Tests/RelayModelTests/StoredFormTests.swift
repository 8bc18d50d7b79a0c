import RelayModel
import RelayTestKit
import Testing

/// The stored forms never change, and every reader reads all of them.
@Suite struct StoredFormTests {
    @Test func `values are written as in the golden file`() throws {
        var texts = try GoldenForms.changes.mapValues { try $0.storedText() }
        for (name, subscription) in GoldenForms.subscriptions {
            texts[name] = try subscription.storedText()
        }
        #expect(texts == (try GoldenForms.texts()))
    }

    @Test func `a change is written in its stored form`() throws {
        for (name, change) in GoldenForms.changes {
            #expect(
                try change.storedText() == JSONValue.object(change.storedForm).text, "\(name)")
        }
    }

    @Test func `values are read as in the golden file`() throws {
        let texts = try GoldenForms.texts()
        for (name, change) in GoldenForms.changes {
            let json = try JSONValue(stored: try #require(texts[name]))
            #expect(try RecordChange(storedForm: json) == change, "\(name)")
        }
        let owner = Sample.owner("ann")
        var bodies = SubscriptionBodies()
        // The second round reads bodies whose parts are known from the first, without parsing them
        // whole.
        for _ in 0..<2 {
            for (name, subscription) in GoldenForms.subscriptions {
                let text = try #require(texts[name])
                let read = try Subscription(stored: try JSONValue(stored: text), of: owner)
                #expect(read == subscription, "\(name)")
                #expect(try bodies.subscription(text, of: owner) == subscription, "\(name)")
            }
        }
    }

    @Test func `the operation is read from the beginning of a change's text`() throws {
        for change in GoldenForms.changes.values {
            let text = Array(try change.storedText().utf8)
            let fitting = ChangeOperation.allCases.filter {
                text.starts(with: RecordChange.storedBeginning(of: $0))
            }
            #expect(fitting == [change.operation])
        }
    }
}
