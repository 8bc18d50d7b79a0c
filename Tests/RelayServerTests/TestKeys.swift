/// Keys that only these tests trust.
enum TestKeys {
    static let rsaPrivate = """
        -----BEGIN PRIVATE KEY-----
        MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDnozr6r32vL5TY
        wJIG7Qi0gz3rknxee6Z37us5LvzNAZ2Fi4T755nNv7LK9HM9cK4NgUjbTGLh+32A
        iu+DoAdhZm6RhfVsXopLaAv0KY59Do/WawEotO/KV9eRJzeX9CU1vLqagx6Hv+gy
        o3jLQIjEJn+q5YIosuyqkgtOSXgr2NxbHzmFohsbZADY/p94ERROEe7zF20kDP9C
        zOe66LvEljwc/ud2Y3UAwIg3oy6lxiultpG/mCCoied67+yemxTzZTBaVWeu5kR0
        Rwfd+4vPXj89EFfMn8LDSGw86zobG7iDg8UmFVOaJUtNWI2ZrNlYXwRITZoJXYN/
        txBJfIjrAgMBAAECggEABUkYOkpxIONdoY2sfjP3Ab5RetF6BiudRxmZsQhY39Jj
        VBA0qA0ikCtSf2J+3GUvimdZYtDK0x5l90vGlaLgmoWA+qtiI2d5bPJ9s1ZK2Fet
        StapqK3YRAm5qhWt3DbsQCde4YjY+OyVPzuzsMZ3oZkKuLsAhMCnS40YbPKags64
        3MCGLdxYHpobcL+FQwHO3dp7fljVe+0OhTaUXM5feoo0eXRC4XIQnOLESKRhL/ut
        /G8YO93TgG7P/lHQG8fsaYjhh8+E6Ksm3cAFyOtLwt2s03DBWfsxdcq7FWVTWvvH
        98v9nd8uo//KiT+WevK303yjS0jXDIbrf5rZ66zFAQKBgQD/ksgp7RrOuMaGJKtE
        ouPUBCxESd4W5qR74dIYjRXrOjiGGAwugaB0rJI2+OY8j84zBfL/+I+VjSS5xd98
        oN1e8M0QvV9nePbiB+EPsHQYD30vIvlyG+0rutxo1pG/xAy7xw4K/1gsiXobhzrl
        IkTkCDkcw47ZWrZ0LTY+X8/mSwKBgQDoBjg7/XCn7mms4yofBaj39Vf8TFW78UJV
        y+gNG4025tAiwgKDJ8K/KdUZZGI+t1L/8Pd/E1+Eda4Uqq3oCg+nFlQaBEbfzKsW
        Kd+9Us9VJwfzcdvGaGlqvx7gpr5/Rqyo+ZsMffUE3qgchUmgZvZms9jVb0yWF2BU
        ig4bbwjD4QKBgEcpT6Kc6oH04RIo06dg058NKmY5SyWFQvdbgWxknF3K8EImH/4z
        CcJy6qNz2meygu+iEG9FfnVdv4QanIfPItR0qCSpFg9xlwyItRnxP+ITLgAZ9OrY
        68jpVsW6OQr0Q7dlTXuybZK5FM7lcHisehIkWAKyUOwkXfkrPZdQhkrRAoGBANbM
        Az1OJ//fEAeUmYb0l3NNtzGDfY8rD00cIuwXiIi97wtubiL7KSgN0xDZxLXowzbb
        3lPPHIsk4o6RX8PDpK/7VMptESvYbr5q7412XyimpI6z5lDskkLXQf+ZfhuX0vnv
        caGD7dOfSSR2JC4Rg6SadG9KxSzh4TUCRYMSLJwhAoGBALz4o0yRkrVPXHyOzatY
        d+6lzOkZvXH1p46it7wfmTFzkwEyudApPF5YgxxXLPXAqK/oT+4EoJgVNASsuDHt
        W0ZLWY0m/bbEC+aTf0+7uAnX9Hcpk5hlW0P2wmZfVkdg/1yfAHwXsCC5hA+KTcLA
        Y/qpZhsBSj3/kjXGJNi5bggK
        -----END PRIVATE KEY-----
        """
    static let rsaPublic = """
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA56M6+q99ry+U2MCSBu0I
        tIM965J8Xnumd+7rOS78zQGdhYuE++eZzb+yyvRzPXCuDYFI20xi4ft9gIrvg6AH
        YWZukYX1bF6KS2gL9CmOfQ6P1msBKLTvylfXkSc3l/QlNby6moMeh7/oMqN4y0CI
        xCZ/quWCKLLsqpILTkl4K9jcWx85haIbG2QA2P6feBEUThHu8xdtJAz/Qsznuui7
        xJY8HP7ndmN1AMCIN6MupcYrpbaRv5ggqInneu/snpsU82UwWlVnruZEdEcH3fuL
        z14/PRBXzJ/Cw0hsPOs6Gxu4g4PFJhVTmiVLTViNmazZWF8ESE2aCV2Df7cQSXyI
        6wIDAQAB
        -----END PUBLIC KEY-----
        """
    static let rsaModulus =
        "56M6-q99ry-U2MCSBu0ItIM965J8Xnumd-7rOS78zQGdhYuE--eZzb-yyvRzPXCuDYFI20xi4ft9gIrv"
        + "g6AHYWZukYX1bF6KS2gL9CmOfQ6P1msBKLTvylfXkSc3l_QlNby6moMeh7_oMqN4y0CIxCZ_quWCKLLs"
        + "qpILTkl4K9jcWx85haIbG2QA2P6feBEUThHu8xdtJAz_Qsznuui7xJY8HP7ndmN1AMCIN6MupcYrpbaR"
        + "v5ggqInneu_snpsU82UwWlVnruZEdEcH3fuLz14_PRBXzJ_Cw0hsPOs6Gxu4g4PFJhVTmiVLTViNmazZ"
        + "WF8ESE2aCV2Df7cQSXyI6w"
    static let rsaKeySet =
        #"{"keys":[{"kty":"RSA","kid":"r","e":"AQAB","n":""# + rsaModulus + #""}]}"#
}
