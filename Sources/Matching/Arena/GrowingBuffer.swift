/// A growing run of plain values that is emptied and filled again without being allocated again.
///
/// An `Array` would do, if its uniqueness and bounds checks did not stand in the innermost loops.
/// Not safe for concurrent use.
struct GrowingBuffer<Element: BitwiseCopyable>: ~Copyable {
    private(set) var base: UnsafeMutablePointer<Element>
    /// Elements in use.
    var count = 0
    private(set) var capacity: Int

    init(capacity: Int = 16) {
        self.capacity = capacity
        base = .allocate(capacity: capacity)
    }

    deinit {
        base.deallocate()
    }

    @inline(__always)
    subscript(index: Int) -> Element {
        get {
            assert(index >= 0 && index < count)
            return base[index]
        }
        nonmutating set {
            assert(index >= 0 && index < count)
            base[index] = newValue
        }
    }

    /// Adds an element.
    @inline(__always)
    mutating func append(_ element: Element) {
        if count == capacity { grow(holding: count + 1) }
        base[count] = element
        count += 1
    }

    /// Makes room for `more` further elements, which may then be written at ``base`` + ``count``.
    @inline(__always)
    mutating func reserve(_ more: Int) {
        if count + more > capacity { grow(holding: count + more) }
    }

    /// Adds elements that lie in a row.
    @inline(__always)
    mutating func append(from start: UnsafePointer<Element>, count more: Int) {
        reserve(more)
        (base + count).update(from: start, count: more)
        count += more
    }

    /// Gives back the room beyond what is in use.
    mutating func compact() {
        if count < capacity { move(to: max(count, 1)) }
    }

    private mutating func grow(holding needed: Int) {
        move(to: max(capacity * 2, needed))
    }

    private mutating func move(to larger: Int) {
        let moved = UnsafeMutablePointer<Element>.allocate(capacity: larger)
        moved.update(from: base, count: count)
        base.deallocate()
        base = moved
        capacity = larger
    }
}
