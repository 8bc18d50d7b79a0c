package import LogShipping
package import RelayModel
import StorageSQLite

/// The settings of continuous backup.
package struct BackupConfiguration: Sendable {
    /// The place to which backups go; `nil` makes none.
    package var url: String?
    var shipping = LogShipper.Settings()
    var spool = LogSpool.Settings()
    /// The settings of an S3-compatible store.
    package var bucket = BucketSettings()

    /// The place that ``url`` names; `nil` if there is none.
    package var place: BackupPlace? { url.flatMap { BackupPlace($0) } }
}

extension ConfigurationKeys {
    /// The keys of continuous backup.
    static let backup = [
        ConfigurationKey(
            "backup.url", .text,
            "Where the store is backed up continuously: file:///FOLDER or s3://BUCKET/PREFIX; "
                + "without it, no backups are made."
        ) { text, configuration in
            configuration.backup.url = text
            let isPlace = BackupPlace(text) != nil
            return isPlace ? [] : ["backup.url: \"\(text)\" must be \(BackupPlace.rule)"]
        },
        ConfigurationKey(
            "backup.intervalSeconds", time: \.backup.shipping.interval, in: .seconds(1), 1...3600,
            "How often the relay ships what was committed: that much is lost if the machine is "
                + "lost."),
        ConfigurationKey(
            "backup.baseHours", time: \.backup.shipping.baseInterval, in: .hour, 1...8760,
            "The time from one copy of the whole file to the next."),
        ConfigurationKey(
            "backup.keep", number: \.backup.shipping.keptBases, 1...1000,
            "How many copies are kept, each with the log since then."),
        ConfigurationKey(
            "backup.spoolMegabytes", number: \.backup.spool.bytes, 64...1_048_576, unit: .mebibyte,
            "How much may wait beside the store while the place of backups does not answer; "
                + "beyond that, the relay makes a new copy of the whole file once the place "
                + "answers."),
        ConfigurationKey(
            "backup.timeoutSeconds", time: \.backup.bucket.timeout, in: .seconds(1), 1...3600,
            "How long one request to an S3-like store may take."),
        ConfigurationKey(
            "backup.s3.endpoint", text: \.backup.bucket.endpoint,
            as: .url(schemes: ["https", "http"]),
            "The URL of an S3-like store; by default AWS in the region."),
        ConfigurationKey(
            "backup.s3.region", text: \.backup.bucket.region,
            "The region of the bucket."),
        ConfigurationKey(
            "backup.s3.addressing", choice: \.backup.bucket.addressing,
            "Whether the bucket's name stands in front of the host or in the path."),
        ConfigurationKey(
            "backup.s3.credentialsFile", text: \.backup.bucket.credentialsFile,
            "The file with the credentials, in the form that the AWS tools use; the relay reads it "
                + "for each request."),
        ConfigurationKey(
            "backup.s3.accessKeyID", text: \.backup.bucket.accessKeyID,
            "The ID of the access key, in place of the file."),
        ConfigurationKey(
            "backup.s3.secretAccessKey", text: \.backup.bucket.secret, secrecy: .secret,
            "The secret of the access key."),
        ConfigurationKey(
            "backup.s3.sessionToken", text: \.backup.bucket.sessionToken, secrecy: .secret,
            "The session token of a temporary access key."),
        ConfigurationKey(
            "backup.s3.caFile", text: \.backup.bucket.caFile,
            "The certificate authorities, in PEM form, of which one must have issued the store's "
                + "certificate, in place of the system's."),
    ]
}

extension BackupPlace {
    /// Creates the destination at this place.
    ///
    /// - Throws: ``DestinationFailure`` if a file of the settings cannot be read.
    package func destination(
        _ settings: BucketSettings, now: @escaping @Sendable () -> Timestamp
    ) throws(DestinationFailure) -> any BackupDestination {
        switch self {
        case .folder(let path): FolderDestination(path)
        case .bucket(let name, let prefix):
            try BucketDestination(name, prefix: prefix, settings: settings, now: now)
        }
    }
}
