import PredicateLanguage
import RelayModel

#if canImport(Glibc)
    import Glibc
#endif

/// A program before it is stored: its rows and its constants, as words.
struct ProgramDraft: ~Copyable {
    var rows = GrowingBuffer<UInt32>(capacity: 32)
    var constants = GrowingBuffer<UInt32>(capacity: 64)

    mutating func removeAll() {
        rows.count = 0
        constants.count = 0
    }

    var rowCount: Int { rows.count / 3 }

    mutating func append(_ row: ProgramRow) {
        let words = row.words
        rows.append(words.0)
        rows.append(words.1)
        rows.append(words.2)
    }

    /// Appends a constant and returns the index where it begins.
    mutating func append(constant slot: FieldSlot, bytes: UnsafeMutablePointer<UInt8>) -> UInt32 {
        let start = UInt32(constants.count)
        let isNumeric = slot.kind == .number || slot.kind == .date
        let length = isNumeric || slot.kind == .null ? 0 : Int(slot.length)
        constants.append(UInt32(slot.kind.rawValue) | UInt32(slot.tail) << 16)
        constants.append(UInt32(length))
        let order = UInt64(bitPattern: slot.order)
        constants.append(UInt32(truncatingIfNeeded: order))
        constants.append(UInt32(truncatingIfNeeded: order >> 32))
        let words = (length + 3) / 4
        constants.reserve(words)
        if words > 0 {
            (constants.base + constants.count)[words - 1] = 0
            memcpy(constants.base + constants.count, bytes + Int(slot.offset), length)
            constants.count += words
        }
        return start
    }
}

/// Stores programs, each of them once for all subscriptions that run it.
///
/// ```
/// | class 7 · kind 3 | uses | hash | rows | words of rows and constants | rows … | constants … |
/// ```
/// Not safe for concurrent use: ``IndexCore`` is guarded as a whole.
final class ProgramStore {
    private let arena: WordArena
    let table = KeyTable()
    /// The parts that only the reference evaluator can judge.
    @exclusivity(unchecked) private(set) var references: [ReferenceRow] = []
    /// The numbers of the parts by the bytes of their canonical text.
    ///
    /// Texts that are equal as Swift strings, such as "é" in its two spellings, are not equal under
    /// every dialect's rules.
    @exclusivity(unchecked) private var referenceNumbers: [[UInt8]: Int] = [:]
    @exclusivity(unchecked) private var freeReferences: [Int] = []

    static let headerWords = 5

    init(arena: WordArena) {
        self.arena = arena
    }

    /// Stores a program, or increments the uses of an equal one.
    func intern(_ draft: borrowing ProgramDraft) -> UInt32 {
        let rowWords = draft.rows.count
        let words = rowWords + draft.constants.count
        let hash = hash(draft)
        if let known = find(hash, draft) {
            arena.base[Int(known) + 1] += 1
            return known
        }
        let sizeClass = WordArena.sizeClass(holding: words + Self.headerWords)
        let offset = arena.allocate(sizeClass: sizeClass)
        let base = arena.base + Int(offset)
        base[0] = UInt32(sizeClass) | BlockKind.program.rawValue << 7
        base[1] = 1
        base[2] = hash
        base[3] = UInt32(rowWords)
        base[4] = UInt32(words)
        (base + 5).update(from: draft.rows.base, count: rowWords)
        (base + 5 + rowWords).update(from: draft.constants.base, count: draft.constants.count)
        table.insert(hash, block: offset)
        for index in stride(from: 0, to: rowWords, by: 3) {
            let row = ProgramRow(draft.rows.base + index)
            if row.test == .reference { references[Int(row.constant)].uses += 1 }
        }
        return offset
    }

    /// Decrements the uses of a program, and removes it with the last use.
    func release(_ program: UInt32) {
        if program == 0 { return }
        let base = arena.base + Int(program)
        base[1] -= 1
        guard base[1] == 0 else { return }
        var slot = table.next(base[2], from: Int(base[2]))
        while slot >= 0, KeyTable.block(of: table.slots[slot]) != program {
            slot = table.next(base[2], from: slot + 1)
        }
        if slot >= 0 { table.remove(at: slot) }
        releaseReferences(of: base)
        arena.release(program, sizeClass: Int(base[0] & 127))
    }

    /// Runs a program.
    @inline(__always)
    func run(_ program: UInt32, on change: DecodedChange, steps: inout Int) -> Verdict {
        let base = arena.base + Int(program)
        return ProgramRunner(change: change)
            .run(base + 5, base + 5 + Int(base[3]), references: references, steps: &steps)
    }

    /// Returns the number of a part for the reference evaluator; programs that refer to it keep it
    /// alive.
    func reference(to node: RecordPredicate.Node) -> Int {
        let predicate = RecordPredicate(node)
        let text = Array(predicate.canonicalText.utf8)
        if let known = referenceNumbers[text] { return known }
        let row = ReferenceRow(predicate, text: text)
        let number = freeReferences.popLast() ?? references.count
        if number == references.count { references.append(row) } else { references[number] = row }
        referenceNumbers[text] = number
        return number
    }

    /// Returns the paths whose values the rows of a program compare.
    func paths(of program: UInt32) -> Set<Int> {
        let base = arena.base + Int(program)
        var paths: Set<Int> = []
        for index in stride(from: 0, to: Int(base[3]), by: 3) {
            let row = ProgramRow(base + 5 + index)
            if row.test != .reference { paths.insert(Int(row.path)) }
        }
        return paths
    }

    /// Returns the number of uses of a program.
    func uses(_ program: UInt32) -> Int { Int(arena.base[Int(program) + 1]) }

    private func releaseReferences(of base: UnsafeMutablePointer<UInt32>) {
        for index in stride(from: 0, to: Int(base[3]), by: 3) {
            let row = ProgramRow(base + 5 + index)
            guard row.test == .reference else { continue }
            let number = Int(row.constant)
            references[number].uses -= 1
            if references[number].uses == 0 {
                referenceNumbers[references[number].text] = nil
                references[number] = .unused
                freeReferences.append(number)
            }
        }
    }

    private func hash(_ draft: borrowing ProgramDraft) -> UInt32 {
        let rows = bytes(of: draft.rows.base)
        let constants = bytes(of: draft.constants.base)
        let first = KeyHash.wide(rows, draft.rows.count * 4, seed: 1)
        return KeyHash.fold(KeyHash.wide(constants, draft.constants.count * 4, seed: first))
    }

    private func bytes(of words: UnsafeMutablePointer<UInt32>) -> UnsafePointer<UInt8> {
        UnsafeRawPointer(words).assumingMemoryBound(to: UInt8.self)
    }

    private func find(_ hash: UInt32, _ draft: borrowing ProgramDraft) -> UInt32? {
        var slot = table.next(hash, from: Int(hash))
        while slot >= 0 {
            let program = KeyTable.block(of: table.slots[slot])
            let base = arena.base + Int(program)
            if Int(base[3]) == draft.rows.count,
                Int(base[4]) == draft.rows.count + draft.constants.count,
                memcmp(base + 5, draft.rows.base, draft.rows.count * 4) == 0,
                memcmp(
                    base + 5 + draft.rows.count, draft.constants.base,
                    draft.constants.count * 4) == 0
            {
                return program
            }
            slot = table.next(hash, from: slot + 1)
        }
        return nil
    }
}

// MARK: - Snapshots

extension ProgramStore {
    /// Appends the parts of the store that are not in the arena to an image.
    func write(to image: inout ImageWriter) {
        table.write(to: &image)
        image.append(UInt64(references.count))
        for reference in references {
            image.append(UInt64(reference.uses))
            image.append(bytes: reference.uses > 0 ? reference.text : [])
        }
    }

    /// Fills an empty store from an image; the arena must have been filled before.
    ///
    /// - Throws: `ImageDamage` if the image is not one that ``write(to:)`` makes, or
    ///   `PredicateError`.
    func load(_ image: inout ImageReader) throws {
        try table.load(&image)
        for number in 0..<(try image.count(0...Int(UInt32.max))) {
            let uses = try image.count(0...Int(UInt32.max))
            let text = try image.text()
            guard uses > 0 else {
                references.append(.unused)
                freeReferences.append(number)
                continue
            }
            var row = ReferenceRow(try RecordPredicate(format: text), text: Array(text.utf8))
            row.uses = uses
            references.append(row)
            referenceNumbers[row.text] = number
        }
    }
}
