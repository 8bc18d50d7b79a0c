/// What an index holds, and what matching has cost since it was made.
package struct IndexStatistics: Sendable, Hashable {
    /// Subscriptions filed.
    package var subscriptions = 0
    /// Distinct keys.
    package var keys = 0
    /// Postings that their key proves.
    package var plainPostings = 0
    /// Postings with an interval to compare.
    package var rangePostings = 0
    /// Postings with a program to run.
    package var guardedPostings = 0
    /// Filings that found an equal predicate there and share its posting.
    package var sharedPostings = 0
    /// Subscriptions without a key of their own, looked at for every change of their record type.
    package var residuals = 0
    /// Distinct programs.
    package var programs = 0
    /// Bytes of everything that grows with the subscriptions.
    package var bytes = 0
    /// Changes matched.
    package var changes: UInt64 = 0
    /// Subscriptions fired.
    package var matches: UInt64 = 0
    /// Postings that had to be verified.
    package var candidates: UInt64 = 0
    /// Those that were confirmed.
    package var confirmed: UInt64 = 0
    /// Programs that were run for it; what several postings in a row share is run once.
    package var runs: UInt64 = 0

    /// Evaluation errors of subscriptions that are filed now.
    package var errors: UInt64 = 0

    package init() {}
}
