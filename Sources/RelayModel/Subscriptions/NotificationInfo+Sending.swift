extension NotificationInfo {
    /// The first member that could never be sent, and the rule for it; `nil` if there is none.
    ///
    /// The initialiser does not check this, so that subscriptions from before the rule stay
    /// readable.
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
        // A text that is too long can be cut, but a cut key is another key.
        guard let key = keys.first(where: { $0.1.map(Self.isTooLong) ?? false }) else { return nil }
        return (
            key.0,
            "has more than \(Limits.maximumNotificationTextBytes) bytes when written as JSON; it "
                + "must fit into a push together with the IDs that a push contains"
        )
    }

    private static func isTooLong(_ key: String) -> Bool {
        var written: [UInt8] = []
        JSONValue.write(key, to: &written)
        return written.count - 2 > Limits.maximumNotificationTextBytes
    }
}

extension String {
    /// Whether no character is a control or ends a line, and the first and last characters are
    /// visible.
    ///
    /// In between, spaces and joiners of letters or emoji are allowed.
    package var showsItsEnds: Bool {
        let ends = [unicodeScalars.first, unicodeScalars.last].compactMap(\.self)
        return !unicodeScalars.contains { $0.properties.generalCategory.controls }
            && !ends.contains {
                $0.properties.isWhitespace || $0.properties.generalCategory == .format
            }
    }
}

extension Unicode.GeneralCategory {
    /// Whether this category consists of controls, line separators or paragraph separators.
    var controls: Bool {
        switch self {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
