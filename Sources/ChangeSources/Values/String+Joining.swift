extension String {
    /// This part of a composed name with commas and backslashes escaped, so that no two keys make
    /// one name.
    var escapedForJoining: String {
        var text = ""
        for character in self {
            if character == "," || character == "\\" { text.append("\\") }
            text.append(character)
        }
        return text
    }
}
