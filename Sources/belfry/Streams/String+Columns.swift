extension String {
    /// The text without what fits at its ends.
    func trimmed(_ isOutside: (Character) -> Bool) -> String {
        guard let first = firstIndex(where: { !isOutside($0) }),
            let last = lastIndex(where: { !isOutside($0) })
        else { return "" }
        return String(self[first...last])
    }

    /// The text in a column of `width` signs.
    func padded(to width: Int) -> String {
        String(prefix(width)) + String(repeating: " ", count: max(0, width - count))
    }
}
