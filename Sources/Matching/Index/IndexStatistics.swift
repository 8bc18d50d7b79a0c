/// What an index holds, and what matching has cost since the index was created.
package struct IndexStatistics: Sendable, Hashable {
    /// The number of subscriptions.
    package var subscriptions = 0
    /// The number of distinct keys.
    package var keys = 0
    /// The number of postings that need no verification beyond their key.
    package var plainPostings = 0
    /// The number of postings with an interval to compare.
    package var rangePostings = 0
    /// The number of postings with a program to run.
    package var guardedPostings = 0
    /// The number of filings that found an equal predicate and share its posting.
    package var sharedPostings = 0
    /// The number of subscriptions without a key of their own, which are verified for every change
    /// of their record type.
    package var residuals = 0
    /// The number of distinct programs.
    package var programs = 0
    /// The size in bytes of everything that grows with the subscriptions.
    package var bytes = 0
    /// The number of changes matched.
    package var changes: UInt64 = 0
    /// The number of subscriptions fired.
    package var matches: UInt64 = 0
    /// The number of postings that had to be verified.
    package var candidates: UInt64 = 0
    /// The number of postings that were confirmed.
    package var confirmed: UInt64 = 0
    /// The number of programs that were run; a program that several postings in a row share runs
    /// once.
    package var runs: UInt64 = 0

    /// The number of evaluation errors of the subscriptions that are filed now.
    package var errors: UInt64 = 0

    package init() {}
}
