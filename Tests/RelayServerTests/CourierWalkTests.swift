import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// The web courier and the inbox from outside: a webhook comes in, and a held GET is answered.
@Suite(.serialized, .timeLimit(.minutes(30))) struct CourierWalkTests {
    /// A page of alice's that has created a token.
    private struct Page {
        let relay: RunningRelay
        let path: String
        let token: JSONValue

        static func open(_ relay: RunningRelay, _ name: String = "page") async throws -> Page {
            let reply = try await relay.container.call(
                "tokens/create",
                ["apnsEnvironment": "development", "clientId": .string(name)], as: "alice", in: nil
            ).expect(200)
            let text = reply["webcourierURL"]?.text.filter { $0 != "\"" }
            let url = try #require(text)
            #expect(url.hasPrefix(relay.client.url))
            return Page(
                relay: relay, path: String(url.dropFirst(relay.client.url.count)),
                token: try #require(reply["apnsToken"]))
        }

        /// Polls once, and returns the record or the kind of the notification.
        func poll() async throws -> String {
            let reply = try await relay.client.call("GET", path).expect(200)
            guard case .object(let ck)? = reply["ck"] else { return "nothing" }
            if case .string(let record)? = reply["ck", "qry", "rid"] { return record }
            return ck["met"] == nil ? "fet" : "met"
        }
    }

    @Test func `a held GET is answered with the next notification in CloudKit's form`()
        async throws
    {
        try await RunningRelay.with { relay in
            let page = try await Page.open(relay)
            try await relay.container.save(.query("q", info: ["alertBody": "New"]))
            let poll = Task { try await relay.client.call("GET", page.path).expect(200) }
            try await relay.container.post(.change("create", "a1"))
            let reply = try await poll.value
            #expect(reply["aps"] == ["alert": ["body": "New"]])
            #expect(
                reply["ck", "qry"] == [
                    "fo": 1, "rid": "a1", "dbs": 2, "sid": "q", "zid": "_defaultZone",
                    "zoid": "_defaultOwner",
                ])
            #expect(reply["ck", "cid"] == "iCloud.com.example.Art")
            #expect(reply["ck", "ckuserid"] == "alice")
            // The phone and the tablet still get theirs from APNs.
            let arrivals = try await relay.arrivals()
            #expect(arrivals == ["phone: qry q created a1", "tablet: qry q created a1"])
        }
    }

    @Test func `many simultaneous polls get each notification exactly once`() async throws {
        try await RunningRelay.with(["--courier-hold-seconds", "1"]) { relay in
            let page = try await Page.open(relay)
            try await relay.container.save(.query("q"))
            let polls = Task {
                try await withThrowingTaskGroup(of: [String].self) { group in
                    for _ in 0..<4 {
                        group.addTask {
                            var texts: [String] = []
                            while texts.last != "nothing" { texts.append(try await page.poll()) }
                            return texts.dropLast()
                        }
                    }
                    var all: [String] = []
                    for try await texts in group { all += texts }
                    return all
                }
            }
            let names = (0..<40).map { "a\($0)" }
            for name in names { try await relay.container.post(.change("create", name)) }
            #expect(try await polls.value.sorted() == names.sorted())
        }
    }

    /// Pages close all the time, so an operator who is alerted about 5xx answers must not see
    /// these.
    @Test func `a poll whose client disconnected does not count as a failure`() async throws {
        try await RunningRelay.with { relay in
            let page = try await Page.open(relay)
            let port = try await relay.relay.ports.port(of: "http")
            let poll = try await RawConnection.open(port)
            try await poll.send("GET \(page.path) HTTP/1.1\r\nHost: relay\r\n\r\n")
            try await poll.finish()
            #expect(await poll.hearAll().hasPrefix("HTTP/1.1 499"))
            let counted = #"{method="GET",path="/courier/1/{secret}",status="499"} 1"#
            let metrics = try await relay.metrics()
            #expect(metrics.contains(counted), "\(metrics)")
        }
    }

    @Test func `one courier serves two containers`() async throws {
        try await RunningRelay.with { relay in
            let page = try await Page.open(relay)
            let second = try await SampleContainer.create(
                "iCloud.com.example.Music", on: relay.client, for: relay.gateway)
            try await second.call(
                "tokens/register",
                ["apnsEnvironment": "development", "apnsToken": page.token], as: "alice", in: nil
            ).expect(200)
            try await second.save(.query("q"))
            try await relay.container.save(.query("q"))
            try await second.post(.change("create", "m1"))
            #expect(try await page.poll() == "m1")
            try await relay.container.post(.change("create", "a1"))
            #expect(try await page.poll() == "a1")
        }
    }

    @Test func `a page gets no notification of its own changes`() async throws {
        try await RunningRelay.with(["--courier-hold-seconds", "1"]) { relay in
            let page = try await Page.open(relay, "page")
            try await relay.container.save(.query("q"))
            try await relay.container.post(
                .change("create", "a1", adding: ["origin": ["deviceID": "page"]]))
            try await relay.container.post(.change("create", "a2"))
            #expect(try await page.poll() == "a2")
            #expect(try await page.poll() == "nothing")
        }
    }

    @Test func `a credential that the gateway refuses does not stop the courier`() async throws {
        try await RunningRelay.with { relay in
            let page = try await Page.open(relay)
            try await relay.container.save(.query("q"))
            try await relay.client.administer(
                "PATCH", relay.container.path, ["apns": .null]
            ).expect(200)
            for name in ["a1", "a2"] {
                try await relay.container.post(.change("create", name))
                #expect(try await page.poll() == name)
            }
        }
    }

    @Test func `the inbox keeps missed notifications and read marks for its owner alone`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.client.administer(
                "PATCH", relay.container.path, ["keepsInbox": true]
            ).expect(200)
            try await relay.container.save(.query("q"))
            // carol has a subscription, but no device.
            try await relay.container.save(.query("c"), as: "carol")
            for name in ["a1", "a2", "a3"] {
                try await relay.container.post(.change("create", name))
            }
            _ = try await relay.arrivals()
            let first = try await relay.container.call(
                "notifications/list", ["resultsLimit": 2], as: "carol", in: "public"
            ).expect(200)
            #expect(first["moreComing"] == true)
            #expect(first["notifications", "1", "subscriptionID"] == "c")
            #expect(first["notifications", "1", "notificationType"] == "query")
            #expect(first["notifications", "1", "payload", "ck", "qry", "rid"] == "a2")
            let rest = try await relay.container.call(
                "notifications/list", ["syncToken": first["syncToken"] ?? .null], as: "carol",
                in: "public"
            ).expect(200)
            #expect(rest["moreComing"] == false)
            #expect(rest["notifications", "0", "payload", "ck", "qry", "rid"] == "a3")
            #expect(rest["notifications", "1"] == nil)

            let id = first["notifications", "0", "notificationID"] ?? .null
            let marked = try await relay.container.call(
                "notifications/markRead", ["notificationIDs": [id]], as: "carol", in: nil
            ).expect(200)
            #expect(marked["notifications", "0", "isRead"] == true)
            let news = try await relay.container.call(
                "notifications/list", ["syncToken": rest["syncToken"] ?? .null], as: "carol",
                in: nil
            ).expect(200)
            #expect(news["notifications", "0", "notificationType"] == "readNotification")
            #expect(news["notifications", "0", "notificationID"] == id)

            let foreign = try await relay.container.call(
                "notifications/list", ["syncToken": rest["syncToken"] ?? .null], as: "alice",
                in: nil)
            #expect(foreign.status == 400)
            #expect(foreign["changeTokenExpired"] == true)
            let stolen = try await relay.container.call(
                "notifications/markRead", ["notificationIDs": [id]], as: "alice", in: nil
            ).expect(200)
            #expect(stolen["notifications", "0", "serverErrorCode"] == "NOT_FOUND")
            let others = try await relay.container.call(
                "notifications/list", [:], as: "alice", in: "private"
            ).expect(200)
            #expect(others["notifications"] == [])
        }
    }

    @Test func `an inbox fetched by GET omits the device's own changes`()
        async throws
    {
        try await RunningRelay.with { relay in
            try await relay.client.administer(
                "PATCH", relay.container.path, ["keepsInbox": true]
            ).expect(200)
            try await relay.container.save(.query("c"), as: "carol")
            try await relay.container.post(
                .change("create", "a1", adding: ["origin": ["deviceID": "page"]]))
            try await relay.container.post(.change("create", "a2"))
            _ = try await relay.arrivals()
            let target = relay.container.target(
                of: "notifications/list", as: "carol", in: "public")
            for (name, first) in [("deviceID", "a2"), ("clientId", "a2"), ("other", "a1")] {
                let answer = try await relay.client.call("GET", "\(target)&\(name)=page")
                    .expect(200)
                let record = answer["notifications", "0", "payload", "ck", "qry", "rid"]
                #expect(record == JSONValue.string(first), "\(name): \(answer.text)")
            }
            for name in ["deviceID", "clientId"] {
                let answer = try await relay.client.call("GET", "\(target)&\(name)=%07")
                    .expect(400)
                #expect(answer.text.contains("\(name): "), "\(answer.text)")
            }
            // An empty name is none, and hides no other.
            let other = try await relay.client.call("GET", "\(target)&deviceID=&clientId=page")
                .expect(200)
            let record = other["notifications", "0", "payload", "ck", "qry", "rid"]
            #expect(record == JSONValue.string("a2"), "\(other.text)")
        }
    }
}
