import RelayModel

/// The commands that `belfry dev` prints for copying, and that `--once` runs unchanged.
struct DevTour: Sendable {
    let sandbox: DevSandbox
    let port: Int
    let adminPort: Int
    /// The path at which the console signs in automatically, once; `nil` without a console.
    let consolePath: String?
    /// Whether other commands find the relay automatically.
    let isFound: Bool
    let userToken: String
    /// The curl command, with its options.
    let curl: String

    /// Returns the curl command for an environment.
    ///
    /// If it names a proxy, an option excludes this machine from it.
    static func curl(_ environment: [String: String]) -> String {
        let isProxied = ["http_proxy", "all_proxy", "ALL_PROXY"].contains {
            environment[$0]?.isEmpty == false
        }
        return isProxied ? "curl -sS --noproxy '*'" : "curl -sS"
    }

    private var secrets: DevSecrets { sandbox.secrets }
    private var container: String { DevSandbox.container }
    private var base: String { "http://127.0.0.1:\(port)" }

    /// The URL of the administrative surface.
    var adminURL: String { "http://127.0.0.1:\(adminPort)" }

    /// How an operator's commands reach the relay.
    private var administration: String {
        isFound
            ? "Other commands of yours find this relay by themselves, for example:\n"
                + "  belfry trigger create Artwork artwork-2 --field artist=artist-1 "
                + "--field title=Dusk\n  belfry overview"
            : "Other commands: belfry overview --url \(adminURL) --admin-token "
                + secrets.adminToken
    }

    /// The command that saves a subscription of alice.
    var subscribe: String {
        """
        \(curl) '\(base)/database/1/\(container)/development/public/subscriptions/modify\
        ?ckAPIToken=\(secrets.apiToken)&ckWebAuthToken=\(userToken)' -d '{"operations": [
          {"operationType": "create", "subscription": {
            "subscriptionID": "new-artworks", "subscriptionType": "query",
            "query": {"recordType": "Artwork", "predicate": "artist = \\"artist-1\\""},
            "firesOn": ["create"],
            "notificationInfo": {"alertBody": "A new artwork by your favourite artist",
              "soundName": "default", "shouldBadge": true, "desiredKeys": ["title"]}}}]}'
        """
    }

    /// The command that posts a change that alice made on her phone.
    var change: String {
        """
        \(curl) '\(sandbox.sourceURL(port: port))' \
        -H 'Authorization: Bearer \(secrets.sourceToken)' \
        -H 'X-Origin-Device: alices-phone' -d '{
          "operation": "create", "recordType": "Artwork", "recordName": "artwork-1",
          "after": {"artist": "artist-1", "title": "Nocturne", "price": 120}}'
        """
    }

    /// The URL of a page that shows how records change.
    ///
    /// Its parameters are in the fragment, so they never leave the browser.
    var page: String {
        "\(base)/live#container=\(container)&environment=development"
            + "&apiToken=\(secrets.apiToken)&recordType=\(DevSandbox.recordType)&token=\(userToken)"
    }

    /// How to open the operator's console, which also shows the screens of the phones.
    private var console: String {
        guard let consolePath else { return "" }
        return
            "4. See it all, and what the phones show, in the console (the address signs in once, "
            + "within ten minutes):\n\n\(adminURL)\(consolePath)"
    }

    private var again: String {
        sandbox.isKept ? " where it ended: \(sandbox.folderPath) is as it was left" : ""
    }

    /// The text that a user reads first.
    var welcome: String {
        """

        Belfry is running\(again). Container \(container) (development) has two users:
          alice, with alices-phone and alices-tablet;
          bob, with bobs-phone.

        1. Save a subscription of alice to new artworks of artist-1:

        \(subscribe)

        2. Post a change that alice made on her phone:

        \(change)

        A local push gateway prints what her tablet gets. Her phone gets none, because it made the
        change; bob did not ask. Control-C ends it.

        3. See the records change as alice does, on a page:

        \(page)

        \(console)

        \(administration)
        Its administrative side: \(adminURL), token \(secrets.adminToken)
        """
    }
}
