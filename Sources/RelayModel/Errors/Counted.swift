/// A number and what it counts, for people: one entry is no "entries".
package enum Counted {
    /// The number with the noun, which has an `s` where there are others than one, unless it is
    /// said how it is written then.
    package static func text(
        _ number: some BinaryInteger, _ noun: String, _ many: String? = nil
    ) -> String {
        "\(number) \(number == 1 ? noun : many ?? noun + "s")"
    }
}
