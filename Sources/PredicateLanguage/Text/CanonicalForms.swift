#if canImport(Darwin)
    import Foundation
#else
    @_spi(_Unicode) import Swift
#endif

// Apple's SDKs do not have the standard library's own forms. Elsewhere Foundation's would take the
// square of a text's length.
extension String {
    /// The characters of the composed form (NFC).
    var composedScalars: some Sequence<Unicode.Scalar> {
        #if canImport(Darwin)
            precomposedStringWithCanonicalMapping.unicodeScalars
        #else
            _nfc
        #endif
    }

    /// The characters of the decomposed form (NFD).
    var decomposedScalars: some Sequence<Unicode.Scalar> {
        #if canImport(Darwin)
            decomposedStringWithCanonicalMapping.unicodeScalars
        #else
            _nfd
        #endif
    }
}
