import RelayModel

/// The answer of `rehearse` in readable form.
struct RehearsalText {
    private let answer: JSONReader

    init(_ answer: JSONValue) throws {
        self.answer = try JSONReader(answer)
    }

    /// The whole text.
    var text: String {
        get throws {
            var blocks = [shown(try answer.string("sentence")), try figures()]
            for example in try readers("examples") { blocks.append(try block(example)) }
            if let near = try answer.reader("nearMisses") { blocks += try misses(near) }
            if let change = try answer.reader("change") { blocks += try differences(change) }
            for warning in try readers("warnings") {
                var line = "warning: " + shown(try warning.string("reason"))
                if let hint = try warning.string("hint") { line += "; " + shown(hint) }
                blocks.append(line)
            }
            return blocks.filter { !$0.isEmpty }.joined(separator: "\n\n")
        }
    }

    // MARK: Figures

    private func figures() throws -> String {
        var lines: [String] = []
        let operations = try answer.reader("byOperation")
        let named = ["create", "update", "delete"].compactMap { name -> String? in
            guard case .integer(let count)? = operations?.value(name), count > 0 else { return nil }
            return "\(name) \(count)"
        }
        if !named.isEmpty { lines.append("by operation  " + named.joined(separator: ", ")) }
        let days = try counts("byDay", "day")
        if !days.isEmpty { lines.append("by day        " + days.joined(separator: ", ")) }
        let hours = try counts("byHour", "hour")
        if !hours.isEmpty { lines.append("by hour       " + hours.joined(separator: ", ")) }
        if let cost = try answer.reader("predicateCost") {
            let candidates = shown(cost.value("candidatesPerChange"))
            let comparisons = shown(cost.value("comparisonsPerChange"))
            lines.append(
                "cost          \(candidates) candidates and \(comparisons) comparisons "
                    + "for each change")
        }
        if let errors = try answer.reader("errors"),
            case .integer(let count)? = errors.value("count"),
            count > 0
        {
            lines.append("errors        \(count)")
            if let example = try errors.reader("example") {
                lines.append("  " + (try title(of: example)))
                lines.append("    " + shown(try example.string("says")))
            }
        }
        return lines.joined(separator: "\n")
    }

    /// Returns the last twelve days or hours.
    private func counts(_ name: String, _ member: String) throws -> [String] {
        let all = try readers(name)
        let newest = try all.suffix(12).map { row in
            "\(shown(try row.string(member))) \(shown(row.value("fired")))"
        }
        return all.count > newest.count ? ["…"] + newest : newest
    }

    // MARK: Changes

    /// Returns a change with its pushes.
    ///
    /// Devices that get the same push are listed together.
    private func block(_ example: JSONReader) throws -> String {
        var groups: [(names: [String], lines: [String])] = []
        for device in try (example.array("devices") ?? []).map({ try JSONReader($0) }) {
            let name = shown(try device.string("deviceID"))
            let lines = try push(device)
            if let index = groups.firstIndex(where: { $0.lines == lines }) {
                groups[index].names.append(name)
            } else {
                groups.append(([name], lines))
            }
        }
        return
            ([try title(of: example)]
            + groups.flatMap { names, lines in
                ["  \(names.joined(separator: ", ")): \(lines[0])"]
                    + lines.dropFirst().map { "    \($0)" }
            }).joined(separator: "\n")
    }

    private func push(_ device: JSONReader) throws -> [String] {
        if let reason = try device.string("leftOut") { return [shown(reason)] }
        var lines = [
            "\(shown(try device.string("pushType"))), priority \(shown(device.value("priority")))"
        ]
        if let count = device.value("standsFor") {
            lines[0] += ", standing for \(shown(count)) deliveries in all"
        }
        if let payload = device.value("payload") { lines.append(payload.text) }
        let pruned = try device.strings("pruned") ?? []
        if !pruned.isEmpty {
            lines.append("without \(shown(pruned.joined(separator: ", "))), for its size")
        }
        return lines
    }

    private func title(of change: JSONReader) throws -> String {
        let type = shown(try change.string("recordType"))
        let name = shown(try change.string("recordName"))
        return "change \(shown(try change.string("position"))), "
            + "\(shown(try change.string("operation"))) \(type)/\(name), "
            + shown(try change.string("at"))
    }

    private func misses(_ near: JSONReader) throws -> [String] {
        let examples = try (near.array("examples") ?? []).map { try JSONReader($0) }
        guard !examples.isEmpty else { return [] }
        let lines = try examples.map { example in
            "\(try title(of: example))\n  \(shown(try example.string("says")))"
        }
        let count = shown(near.value("count"))
        let among = shown(near.value("among"))
        let sentence =
            among == "1"
            ? "The last change that did not fire it missed by one comparison:"
            : "Of the last \(among) changes that did not fire it, \(count) missed by one "
                + "comparison:"
        return ["\(sentence)\n" + lines.joined(separator: "\n")]
    }

    private func differences(_ change: JSONReader) throws -> [String] {
        try [("added", "addedExamples"), ("removed", "removedExamples")].compactMap { word, name in
            let examples = try (change.array(name) ?? []).map { try JSONReader($0) }
            guard !examples.isEmpty else { return nil }
            return try "\(word) \(shown(change.value(word))), the newest:\n"
                + examples.map { "  " + (try title(of: $0)) }.joined(separator: "\n")
        }
    }

    private func readers(_ name: String) throws -> [JSONReader] {
        try (answer.array(name) ?? []).map { try JSONReader($0) }
    }

    private func shown(_ value: JSONValue?) -> String { CommandOutput.shown(value) }

    private func shown(_ text: String?) -> String {
        CommandOutput.shown(text.map { .string($0) })
    }
}
