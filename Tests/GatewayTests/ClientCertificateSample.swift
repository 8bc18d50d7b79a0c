/// A client certificate for tests, valid until 2126.
///
/// No server trusts it, and its key is used for nothing else.
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

    /// The certificate and key as a PKCS#12 file.
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

    /// The certificate and key in the old form of keychains, with RC2 and 3DES.
    ///
    /// It was made with `openssl pkcs12 -export -legacy`.
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

    /// The certificate without the key, in the old form.
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

    /// The certificate and key in two layers, the inner of which takes 4,000,000 rounds to open.
    static let dearPKCS12 = """
        MIIEnQIBAzCCBFMGCSqGSIb3DQEHAaCCBEQEggRAMIIEPDCCAoIGCSqGSIb3DQEHBqCCAnMwggJvAgEAMIICaAYJ\
        KoZIhvcNAQcBMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAitV8Fj7j2VcgICCAAwDAYIKoZIhvcNAgkF\
        ADAdBglghkgBZQMEASoEEJ964G7QBL8LOQ9dmI4HuQGAggIAAVyRjKph0m9GdvtVPXIHvOZ0U+COK4rQgCHktfSj\
        Thuk82Z4B6kxZ3Esq7WBj3eLZzELQUBeg1/sXePQAbdZtOlsABw8K/kfg07+7Sf+7AIxW8sV7zsYH8xS0MPveuoD\
        Ylmgfh37Wobd+Pp1ee2Yk64+BM37osdVC7ADII/R0S9UgKfLwPvkgjOtvWQNLVeGu3HUnBqiOk+iZbUW625j2SL0\
        SsNNkwjJVjBFSECTgDJiSS9I/m0k5hYeeFBmduJpGRKE8Q1V1x4xdIa9CJn/n8fxf/6PAlEZjC1skXH3rh5wgg+c\
        GCX5Kl67yOVeYFUdpx9GLLDPPBSXd8WaLPL5IoRMzqZYwDhkvbjn7bBFxiOuLar1uMzOWY6DB3XxlL2UwlOq+gv7\
        pHauV3hqDSf+wDY6v2BvLMo0vJ19QtsI+sY3jk7O8pDsUZOL/QH+uPQOmRhi9NTBmfqGF0D+WNe4xq1MAbJTe0xB\
        s3xcgS60KjV5RCZrcunMmx7o9nR8XjextoCpQgGoC9Z3q7owMjXx6SqLg9J5dgaX04eKJ0Q/qQED7eNjHL4V5YSh\
        GNLfuu5yFDLfxepZVNemjVSsAGxWtwJSzyPrCGU6GipR4EFPUe9NZLITNgtX+aSc3XTu3/0X7AlGSwYDfozQm1jy\
        0LhU1vJj8TQIc+gSbCqXSQttY2MwggGyBgkqhkiG9w0BBwagggGjMIIBnwIBADCCAZgGCSqGSIb3DQEHATBXBgkq\
        hkiG9w0BBQ0wSjApBgkqhkiG9w0BBQwwHAQInWPBQ1lgcucCAggAMAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEq\
        BBD1v98PvwIR29i2uJH9F4EGgIIBMGKkMhKjBwx/nBefC8QiQbeCIQgDB5jsNo8r2GnS6LUs3WF5pvBhhBFmoiE7\
        qDEYAJhROE+SEenJEL09mMRHmA5lhQVxjZi/aL41Pk3x5Ko2kZq2PAVKnuOeo2rMIpx4VX8o0dfKs6ZL2iCc7nQY\
        35AzNd3gdvsheFAQU3bm550DJwe/rWD09y/w5oZT//Irj2IJd5TKQgEB7s+YkIJEcj7gHsGma3QVFpai5/xtk/CS\
        sF9CsX573kwHDHA2S4i9yJDOuTW2K2vsfZYi95QA2B8yXqeLCqi7lNtnT+aLn3aGQGnbRSHBlgoCKF1kHuqtnrtY\
        Tm/Vp1jkTjUlUNQbXo9hekR0JuGMhOKsbpoGbLN9eFzVxZOmwiEpLGKkeOUxAWgvnanl5WZTnu+JgkQqw7cwQTAx\
        MA0GCWCGSAFlAwQCAQUABCC+zcJCXe9m4HaWoliTocikDU5pD1zDpT5zGCHOZYCPNwQIgVhwQbHX+VECAggA
        """

    /// The key alone, with 4,000,000 rounds.
    static let dearKey = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHtMFgGCSqGSIb3DQEFDTBLMCoGCSqGSIb3DQEFDDAdBAjeyoBWzTHL6wIDPQkA
        MAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEqBBDsHTfvQTdXDiWfsuc1POtqBIGQ
        UYfZh2szyKiFeS0dxpjKqDZBGpPyrBdosspBI429lnxBTfoZoxKPU8b8aUd56o6w
        XSSGEGIe1qeOVtyk1JGnhBji5QLyqkVzLKKBr7wwgXyKNedtDwYHYMtcsh8TheVQ
        89EwF+XjSY4DZCHeMdyYp1ijWzAuymWhgUDYtV6GKbW/nvwWnESTxrLmSzyNpWw2
        -----END ENCRYPTED PRIVATE KEY-----
        """

    /// The passphrase of the PKCS#12 files.
    static let passphrase = "opensesame"
}
