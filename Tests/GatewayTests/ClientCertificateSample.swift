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

    /// The same as keychains wrote it for years: RC2 and 3DES
    /// (`openssl pkcs12 -export -legacy`).
    static let oldPKCS12 = """
        MIIDzwIBAzCCA5UGCSqGSIb3DQEHAaCCA4YEggOCMIIDfjCCAlcGCSqGSIb3DQEHBqCCAkgwggJEAgEAMIICPQYJ\
        KoZIhvcNAQcBMBwGCiqGSIb3DQEMAQYwDgQIiARdRUdw4CcCAggAgIICEHXcVygD/cl9WihVS1hYTlDiEJJlRyC8\
        54jhganUTpZKZKJDjRpBIhysoselOKVGY9wPL+o/IykJnyktNKm2KjgidUiKe6jmOJO9Qdne+yMKj9MSQULfd6sk\
        eDVrJYkO+3iRBusYmnY41q65Cer9LcK0WtegrFAJRaMBkVWOBiLJ4MeE8kxxZnIGmNv+m0nIyW6fMQTgzu/yisww\
        HPDAYjqcl7jj1yUOy4Vwp4lQ7zZU+e/1qhNENFStgGH50QgqBFq/d/huW8Z8jELuhYYsUXprT7zCcvKamZiAuSlY\
        9n8TeI3xtI/PHQkVDsQHDKYH9tB+OtPAl1nMOOhkPV0pOyk6zHkQ6eFHPN2O07VF1Cs3g61u5yrGa/zoVxjR/n+L\
        URlu8N+Mgi57omLM3jkUkbKiEpHtkKziL0wpREm3XtxYxTzYVPcpQstGa0WNpXoxgy3VGWmN7MVuSazYIdmPinec\
        tbhuEDV+g/Lqi6ZUZldBd32vxrESZZ1m8fqKCPNV2g24JGfGzFITMlRmmpO7PyDPTqXOJEZPI8h+3CRgTDsJqubk\
        skLCNYGzG47a3hijJqtYGab//OptIQW7q8t5VT+oiM/a8Cka1TsAnbfqq46yta5YBJXD/NF8wAhlRck5wIo/waXv\
        dE9eVMOs3GTiAd6GT3G8/Xj73nN5/qQPa9AKwX1Zp4rjzlce0Mi1E3QM0DCCAR8GCSqGSIb3DQEHAaCCARAEggEM\
        MIIBCDCCAQQGCyqGSIb3DQEMCgECoIG0MIGxMBwGCiqGSIb3DQEMAQMwDgQIRJuhl51RX9MCAggABIGQR1mPW0e4\
        LbDcMp+TWVv39VsaA+1O7+0zka2UoCAbaUI9T0UcaG8d3+qIW6aUGsYu0KEo/ZNk2PJORHgAqPf7C+92wjfAzuIz\
        6Q+QJ+zBzeou4TIK0c6V7LbreewTqR5YI7IoNE3CDqLX1ue9wT8O1CEjQh3CiLPZa+wRT3bcTrK7O6CzwsUL7n33\
        xW6i6BROMT4wFwYJKoZIhvcNAQkUMQoeCABwAHUAcwBoMCMGCSqGSIb3DQEJFTEWBBS0Q/EmLyvxs5yqX/+JWI07\
        4YER3jAxMCEwCQYFKw4DAhoFAAQUa2GIcZ6vTxuB0yphd40U70H0dZYECFLv/hLtC/ehAgIIAA==
        """

    /// The certificate alone, without the key, in the same way.
    static let certificateAlone = """
        MIICbAIBAzCCAjIGCSqGSIb3DQEHAaCCAiMEggIfMIICGzCCAhcGCSqGSIb3DQEHBqCCAggwggIEAgEAMIIB/QYJ\
        KoZIhvcNAQcBMBwGCiqGSIb3DQEMAQYwDgQI22JAMPUjnt8CAggAgIIB0J5qm1sS+C4cA7WwICveY9sY7HnuZp9H\
        JEQLc63BN9EKxsJ3Bi4rbf6BkX9qpS9+YSt7EOCLR/GLrWOq4ECyMtWXEgjWZ8Qbj5dOkZLCBXRb92ZzGQWWLHBS\
        jzy0rT2pGh1Tey8/HDsaO63XUBc/IjjwJsX05vaxV2SqYkGelJfyiFcvQOJUGs0gp57r/Opb3WHrd0d5B75H0SUw\
        dz/WCMGSpnInfu528CBemqabfFX8OweJNgupBfzlm05AzcPPLeNCAA6wOVCq8VhWjFWZFpTF/RffHQlBW4eYYnE/\
        SH3e2ah/902zGkC4ztJGfQulKn3RqJL4aOjWG57UTcpaMorjORh13QAbU59ufEa8IUTYc1e9eJvsZATnqOXBdNYn\
        Sl4UpcJZvnHUTmq2nualDwqUI1oi2K+cpob0HD6NlkeXB8FKW1vb/N5RWduBhShzNaY36yEM5TyOnM+DMTdaKvU6\
        7btuetg26be4PtqtK0ykSuoqEiZftyLRW6VkmRHemyIJV0mQv8ZkmhoqlCR/t3J922b9KUb1S/eZQMQLsVyUAp4w\
        H04txaPxvwDoAFeLlVK/hxQ8kRekKnj31rhNxsPLQY/G43B3gt/ONLBiu8+/MDEwITAJBgUrDgMCGgUABBRl4FEh\
        GcFJU6tUFpRz1ZBvzmChUwQIJvUJbAt2TeMCAggA
        """

    /// The passphrase of the PKCS#12 files.
    static let passphrase = "opensesame"
}
