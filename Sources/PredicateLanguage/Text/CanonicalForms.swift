#if canImport(Darwin)
    import Foundation
#else
    @_spi(_Unicode) import Swift
#endif

// Apple's SDKs do not have the standard library's own forms. On other platforms, Foundation's forms
// would take quadratic time in the length of the text.
extension String {
    /// The code points of the composed form (NFC).
    var composedScalars: some Sequence<Unicode.Scalar> {
        #if canImport(Darwin)
            precomposedStringWithCanonicalMapping.unicodeScalars
        #else
            _nfc
        #endif
    }

    /// The code points of the decomposed form (NFD).
    var decomposedScalars: some Sequence<Unicode.Scalar> {
        #if canImport(Darwin)
            decomposedStringWithCanonicalMapping.unicodeScalars
        #else
            _nfd
        #endif
    }
}
