#if canImport(Glibc)
    import Glibc
#endif

/// A lock of the operating system's threads.
///
/// The standard library's `Mutex` would do, but on Linux the thread sanitizer does not recognise
/// it, and tests under the sanitizer check what the index promises to its readers.
///
/// `@unchecked Sendable`: the only stored property is a constant pointer to a lock, which any
/// thread may use as long as the object exists.
final class ThreadLock: @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_mutex_t>

    init() {
        lock = .allocate(capacity: 1)
        lock.initialize(to: pthread_mutex_t())
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        // The lock is held for about a microsecond, so retrying is cheaper than sleeping and waking
        // up.
        pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
        pthread_mutex_init(lock, &attributes)
        pthread_mutexattr_destroy(&attributes)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    /// Waits until the lock is free, and takes it.
    func take() {
        pthread_mutex_lock(lock)
    }

    /// Takes the lock if it is free, and returns whether it did.
    func takeIfFree() -> Bool {
        pthread_mutex_trylock(lock) == 0
    }

    func giveBack() {
        pthread_mutex_unlock(lock)
    }
}
