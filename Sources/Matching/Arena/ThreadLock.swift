#if canImport(Glibc)
    import Glibc
#endif

/// A lock of the operating system's threads.
///
/// `Mutex` of the standard library would do, but the thread sanitizer does not see through it on
/// Linux, and what the index promises to readers is shown under the sanitizer.
///
/// `@unchecked Sendable`: the only stored property is a constant pointer to a lock, which any
/// thread may use until the object is gone.
final class ThreadLock: @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_mutex_t>

    init() {
        lock = .allocate(capacity: 1)
        lock.initialize(to: pthread_mutex_t())
        var attributes = pthread_mutexattr_t()
        pthread_mutexattr_init(&attributes)
        // A reader is held for a microsecond: trying again is cheaper than being woken up.
        pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
        pthread_mutex_init(lock, &attributes)
        pthread_mutexattr_destroy(&attributes)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    /// Waits until nobody else holds the lock, and holds it.
    func take() {
        pthread_mutex_lock(lock)
    }

    /// Holds the lock if nobody else does; says whether.
    func takeIfFree() -> Bool {
        pthread_mutex_trylock(lock) == 0
    }

    func giveBack() {
        pthread_mutex_unlock(lock)
    }
}
