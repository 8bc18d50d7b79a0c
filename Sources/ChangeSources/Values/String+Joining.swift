extension String {
    /// This part of a composed name with commas and backslashes escaped, so that no two keys make
    /// the same name.
    var escapedForJoining: String {
        // By scalars, because a comma and a combining mark are one character that is not equal to a
        // comma.
        var text = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            if scalar == "," || scalar == "\\" { text.append("\\") }
            text.append(scalar)
        }
        return String(text)
    }
}
