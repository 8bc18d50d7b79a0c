/// What requests of a commit look up before they write, so that an engine with round trips is asked
/// once.
package struct Lookahead {
    /// The names of dedupe keys.
    var keys: [RowName] = []
    /// The names of records whose noted versions are needed.
    var versions: [RowName] = []
}
