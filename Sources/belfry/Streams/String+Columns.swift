extension String {
    /// Returns the text without characters at its ends that satisfy `isOutside`.
    func trimmed(_ isOutside: (Character) -> Bool) -> String {
        guard let first = firstIndex(where: { !isOutside($0) }),
            let last = lastIndex(where: { !isOutside($0) })
        else { return "" }
        return String(self[first...last])
    }

    /// Returns the text, cut or padded to `width` characters.
    func padded(to width: Int) -> String {
        String(prefix(width)) + String(repeating: " ", count: max(0, width - count))
    }
}
