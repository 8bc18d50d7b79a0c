/// A client certificate for tests, good until 2126 and trusted by nobody; the key is nobody's.
enum ClientCertificateSample {
    /// Certificate and key in one file, as PEM.
    static let pem = """
        -----BEGIN CERTIFICATE-----
        MIIBlDCCATugAwIBAgIURgdrsTapJKBbu1ALlWsd2dAEdVQwCgYIKoZIzj0EAwIw
        HzEdMBsGA1UEAwwUY29tLmV4YW1wbGUuQXJ0IHB1c2gwIBcNMjYxMTIxMTAxODM0
        WhgPMjEyNjEwMjgxMDE4MzRaMB8xHTAbBgNVBAMMFGNvbS5leGFtcGxlLkFydCBw
        dXNoMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE9MZgh8r8vKm+WzfnsxX7a+r+
        qH8AV59qle4B7cTSjZRyZx6HIG4U65sh1VMvLJomqc0xpzJsBW2M0Ad7Jr7c1aNT
        MFEwHQYDVR0OBBYEFA0oWqEtHBTMA+3+H7bnnz0G+Xh6MB8GA1UdIwQYMBaAFA0o
        WqEtHBTMA+3+H7bnnz0G+Xh6MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwID
        RwAwRAIgU8OpRLnVdzTUKYfGArKBuN1aTSFFUHDYbmoWSNHyMlMCIBENunF1jQgS
        s7VfrxJirZ/RvebBtpc9oHvLvvDp/bdq
        -----END CERTIFICATE-----
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgLQcYmBPzFISxDpYK
        gc31E6XwmVniFCnfUXN1/yD3E9ihRANCAAT0xmCHyvy8qb5bN+ezFftr6v6ofwBX
        n2qV7gHtxNKNlHJnHocgbhTrmyHVUy8smiapzTGnMmwFbYzQB3smvtzV
        -----END PRIVATE KEY-----
        """

    /// The same as a PKCS#12 file.
    static let pkcs12 = """
        MIIEVQIBAzCCBAsGCSqGSIb3DQEHAaCCA/wEggP4MIID9DCCApIGCSqGSIb3DQEHBqCCAoMwggJ/AgEAMIICeAYJ\
        KoZIhvcNAQcBMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgVmM9m1bHXSwICCAAwDAYIKoZIhvcNAgkF\
        ADAdBglghkgBZQMEASoEEEx1F4DPih2IUruRaZIdzn+AggIQ7meaH9fW/4p82hzF1S6SrIN9Wn9dpTX2kdqL+3mS\
        xPOXSugqqR47lZJszVpUCfVMMwQt4M9HXf9jrbkZU7UCBXDxFPxcAtrk+mw9Iz18h9v8+wYZEXuya2nr7QYvZUc1\
        QOamsC1dlaxUAL4JmvzBo2UlBqSfavt54DNAe2puRJM70Fxhp9q5mK2Z2RdCBMKLmamE+GH75JUv9jgWmhJTFIG+\
        B+6XVFkqreLQScD7TYGWgffJlAqtVy0s3E5BOO4xm7S+wRIpKiZiFOVG64zTAe4ezS5JN/AC+KvAISkyPeug++D9\
        nQXZDlKcCGP2W0XBM2D11T/ez3lHwQNwdBJ0aA/qj2shT65Cx4/iJhS5RCeB05Yf5TnMhesHjCgnMfdUmRxqjmW5\
        cO+GLGm++FCSDd+nrzAZ2OCmNm2KcP/vBo7pj1JFkXpI0lnTRdYyyQDrpqHw262ujeA5mXW5pZC4m6JLKq52tSPD\
        HOTshKuiPBd0tje6RIYYXACDp95itgUpzNDukcSmHcSt5jBxGj9DeOFPM1OaK4ek7FaQE0f+Ze8ebwzDReuIIiMd\
        cbIzWOw36f68c/8APSmfb6HuOD+LZOuvTmXN0HBlo3FUZjoJoMdjliWHZr3tm/Lxup0uYKuZ8FcpegAtpXXfkf3P\
        gHitSb2sUibdNOW3T7cjCudADxBr6wXkFrG+VGU9kOy/oOpFMIIBWgYJKoZIhvcNAQcBoIIBSwSCAUcwggFDMIIB\
        PwYLKoZIhvcNAQwKAQKgge8wgewwVwYJKoZIhvcNAQUNMEowKQYJKoZIhvcNAQUMMBwECI5v2tQVuCRDAgIIADAM\
        BggqhkiG9w0CCQUAMB0GCWCGSAFlAwQBKgQQhe+dUqVD56VC5i2xPN0hmwSBkLoXdx60YPM50pzZqAP4t2vn/5sD\
        PWKANmAeaLGH5IIUslb9izHwKAXNkASJXaDPbUHXrnSY/GhdQZiQQQ634vzSAm79PtqjXAL+Xq0iY5Hj2Mr9pcLQ\
        fsZvEpNTM0IiUQn3F5OWto0MaKikH1qPoJiyi/502szNaJ7qJhz4Y/9hVuK0qpZz4gvGGnHbBpoKtTE+MBcGCSqG\
        SIb3DQEJFDEKHggAcAB1AHMAaDAjBgkqhkiG9w0BCRUxFgQUtEPxJi8r8bOcql//iViNO+GBEd4wQTAxMA0GCWCG\
        SAFlAwQCAQUABCBIo+8mRJKizdIbMvgQ3RvTsnYytsPyh4IgloeU2/cRRQQIDQ6yt5WCnYgCAggA
        """

    /// The passphrase of ``pkcs12``.
    static let passphrase = "opensesame"
}
