/// A growing buffer of plain values that can be emptied and refilled without a new allocation.
///
/// It is used in place of an `Array`, whose checks of uniqueness and bounds would be in the
/// innermost loops. Not safe for concurrent use.
struct GrowingBuffer<Element: BitwiseCopyable>: ~Copyable {
    private(set) var base: UnsafeMutablePointer<Element>
    /// The number of elements in use.
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

    /// Appends an element.
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

    /// Appends elements that are contiguous in memory.
    @inline(__always)
    mutating func append(from start: UnsafePointer<Element>, count more: Int) {
        reserve(more)
        (base + count).update(from: start, count: more)
        count += more
    }

    /// Frees the capacity that is not in use.
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
