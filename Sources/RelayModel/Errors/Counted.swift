/// Formats a number with its noun, in the singular or plural, for messages.
package enum Counted {
    /// Returns the number with the noun.
    ///
    /// Unless the number is 1, the noun is `many`, or `noun` with an `s` if `many` is `nil`.
    package static func text(
        _ number: some BinaryInteger, _ noun: String, _ many: String? = nil
    ) -> String {
        "\(number) \(number == 1 ? noun : many ?? noun + "s")"
    }
}
