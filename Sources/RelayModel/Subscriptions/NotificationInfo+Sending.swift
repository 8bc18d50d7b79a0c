extension NotificationInfo {
    /// What of it could never be sent: the member, and what is allowed.
    ///
    /// Reading does not ask for it, so that what was saved before the rule stays readable.
    public var unsendable: (member: String, rule: String)? {
        if let collapseIDKey,
            !collapseIDKey.isHeaderText(upTo: Limits.maximumCollapseIDBytes)
                || !collapseIDKey.showsItsEnds
        {
            return (
                "collapseIDKey",
                "must be 1 to \(Limits.maximumCollapseIDBytes) UTF-8 bytes without control "
                    + "characters and line ends, and without a blank or an invisible character "
                    + "at its beginning or end (APNs)"
            )
        }
        if let priority, priority != 5, !isVisible {
            return ("priority", Self.backgroundRule(priority))
        }
        let keys = [
            ("alertLocalizationKey", alertLocalizationKey),
            (titleNames.titleKey, titleLocalizationKey),
            (titleNames.subtitleKey, subtitleLocalizationKey),
        ]
        // A text that is too long can be cut; a key that is cut is another one.
        guard let key = keys.first(where: { $0.1.map(Self.isTooLong) ?? false }) else { return nil }
        return (
            key.0,
            "has more than \(Limits.maximumNotificationTextBytes) bytes as it is written in JSON, "
                + "and must fit into a push with what else identifies it"
        )
    }

    private static func isTooLong(_ key: String) -> Bool {
        var written: [UInt8] = []
        JSONValue.write(key, to: &written)
        return written.count - 2 > Limits.maximumNotificationTextBytes
    }
}

extension String {
    /// Whether nothing in it controls or ends a line, and its ends are characters to be seen.
    ///
    /// Within it a blank or a joiner of letters or emoji may stand.
    package var showsItsEnds: Bool {
        let ends = [unicodeScalars.first, unicodeScalars.last].compactMap(\.self)
        return !unicodeScalars.contains { $0.properties.generalCategory.controls }
            && !ends.contains {
                $0.properties.isWhitespace || $0.properties.generalCategory == .format
            }
    }
}

extension Unicode.GeneralCategory {
    /// Whether its characters are controls or separators of lines and paragraphs.
    var controls: Bool {
        switch self {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
