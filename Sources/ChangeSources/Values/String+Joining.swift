extension String {
    /// This part of a composed name with commas and backslashes escaped, so that no two keys make
    /// one name.
    var escapedForJoining: String {
        // By scalars: a comma and a mark above it are one character, which is no comma.
        var text = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            if scalar == "," || scalar == "\\" { text.append("\\") }
            text.append(scalar)
        }
        return String(text)
    }
}
