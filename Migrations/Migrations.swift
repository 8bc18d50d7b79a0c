import EmbeddedFiles

/// One step of the schema, in the order of its number; a released one never changes.
package struct Migration: Sendable, Hashable {
    /// The name of the file, without its ending.
    package let name: String
    /// The statements.
    package let sql: String
    /// SHA-256 of the file in hexadecimal digits; a test compares it with the file.
    package let checksum: String

    /// Creates a step.
    package init(name: String, sql: String, checksum: String) {
        self.name = name
        self.sql = sql
        self.checksum = checksum
    }

    /// Every released step; the version of a schema is how many of them it has.
    package static let released: [Migration] = [
        Migration(
            name: "v0001_createSchema",
            sql: EmbeddedFile("v0001_createSchema.sql").text,
            checksum: "fd7aa60c32cde9c838796adb76c2fd39747ffb1b03c31e08470da7e3fbab7b78"),
        Migration(
            name: "v0002_recordSnapshots",
            sql: EmbeddedFile("v0002_recordSnapshots.sql").text,
            checksum: "4bc159b864c3998b2304892d66e2dfd106d75a3907d6cf1ccc3a8d0804610a69"),
        Migration(
            name: "v0003_addRetryLane",
            sql: EmbeddedFile("v0003_addRetryLane.sql").text,
            checksum: "d27aaf466ed8c18f32ff70d707d307cb8bcd9de6eb837f1284fccef700209e54"),
        Migration(
            name: "v0004_keepHouse",
            sql: EmbeddedFile("v0004_keepHouse.sql").text,
            checksum: "54ea1ae70d6677fa866a12866f0c3eac112399402b3b940f3fed110245aba710"),
        Migration(
            name: "v0005_keepRecords",
            sql: EmbeddedFile("v0005_keepRecords.sql").text,
            checksum: "79cac567f73b089cbb136211d9bce9261e15cd1a0e8a860cef2184144d6160d5"),
        Migration(
            name: "v0006_keepNotifications",
            sql: EmbeddedFile("v0006_keepNotifications.sql").text,
            checksum: "3480c61c357b4baf28789019c3eff0568deff54f477162dbe83c3ea1bcd5db05"),
        Migration(
            name: "v0007_endMarks",
            sql: EmbeddedFile("v0007_endMarks.sql").text,
            checksum: "23aa697bf4cf97b0ded2125e79c4650b469c4526c5a6955114d47e1ed75e417d"),
        Migration(
            name: "v0008_boundCosts",
            sql: EmbeddedFile("v0008_boundCosts.sql").text,
            checksum: "42348b700b84d0affb287d7225114b3c23eefb2e64f8183c4e88d17eaa2c3016"),
        Migration(
            name: "v0009_countBacklog",
            sql: EmbeddedFile("v0009_countBacklog.sql").text,
            checksum: "b15d1bcdade7ba2807c6ca56ff7c52e732d33d044bba53bedca45b32d1b309ae"),
        Migration(
            name: "v0010_witnessStore",
            sql: EmbeddedFile("v0010_witnessStore.sql").text,
            checksum: "d065c5f18cbb83de36adc5c7bcac44c5202abbfe524391b008a34717d57ac687"),
        Migration(
            name: "v0011_scopeDevices",
            sql: EmbeddedFile("v0011_scopeDevices.sql").text,
            checksum: "63d23ae1cb1294a2614b9eed855ef12bc5f34d57860ce8858231d732a406b89a"),
        Migration(
            name: "v0012_sealSecrets",
            sql: EmbeddedFile("v0012_sealSecrets.sql").text,
            checksum: "2464794a80331c398c57e5e854e19769c0fa3ecfb3ffcdf9ecd2afd2bafd49fa"),
        Migration(
            name: "v0013_disableDear",
            sql: EmbeddedFile("v0013_disableDear.sql").text,
            checksum: "a2ed3195791d98c0927d964cfbe773e535a00c7825a328ca2cf9597daa30620d"),
        Migration(
            name: "v0014_countQuotas",
            sql: EmbeddedFile("v0014_countQuotas.sql").text,
            checksum: "2dad52e38b040fa965e12ae7ca1df9cfe2d300728ce732c703e864087ac5959d"),
        Migration(
            name: "v0015_setRates",
            sql: EmbeddedFile("v0015_setRates.sql").text,
            checksum: "0e6cead620993af6c4b24a28753adbee713d661d0d45af32e43ff5eb84e3babc"),
        Migration(
            name: "v0016_endZones",
            sql: EmbeddedFile("v0016_endZones.sql").text,
            checksum: "6ac7da89aa28715b6b478fb95bddb71b2953b442f2af203e00aeb605f999ca43"),
        Migration(
            name: "v0017_keepPast",
            sql: EmbeddedFile("v0017_keepPast.sql").text,
            checksum: "a1b3a0b59f90dfcc197395bee0afacfee7ee671d408b7f0cee3531bd932bdc64"),
        Migration(
            name: "v0018_markRequests",
            sql: EmbeddedFile("v0018_markRequests.sql").text,
            checksum: "e54386421dc9c9c47330da0e9a26e9ebf2281d9ecfc809365813144c187fe070"),
        Migration(
            name: "v0019_tellHealth",
            sql: EmbeddedFile("v0019_tellHealth.sql").text,
            checksum: "c143b8fc2fb0258f7f92adff2ce9e4d3fd4854e913cfdb7324e206e7dc670c44"),
        Migration(
            name: "v0020_keepKindness",
            sql: EmbeddedFile("v0020_keepKindness.sql").text,
            checksum: "87f91cad9216199ef451b579fa4eb1c7e6f4aa50ed3b367c05ec44166ffccf54"),
        Migration(
            name: "v0022_listNewest",
            sql: EmbeddedFile("v0022_listNewest.sql").text,
            checksum: "dec7243a2ea2b05ca79309a9d82d437a18ff9636fea569e567cca21910e861fd"),
        Migration(
            name: "v0023_countSeen",
            sql: EmbeddedFile("v0023_countSeen.sql").text,
            checksum: "3779c61e4851fc8ddd78811e94cf1dfe4baacfbb6e040a88f2d6515cbf5ce66e"),
        Migration(
            name: "v0024_keepThrottles",
            sql: EmbeddedFile("v0024_keepThrottles.sql").text,
            checksum: "2711a64969ffdc541d64e7dd9bd3e250a20619bc528c3c51afe908d5364af451"),
        Migration(
            name: "v0025_checkByComparing",
            sql: EmbeddedFile("v0025_checkByComparing.sql").text,
            checksum: "f284760e3a4c06d421c8f3928f6108065f1ebb99813e7e7fb06d5fa2d36597e7"),
        Migration(
            name: "v0026_markIndexed",
            sql: EmbeddedFile("v0026_markIndexed.sql").text,
            checksum: "3f630a7950569b7205933734f6cc4508fb477542db96c8f432d43768787c85c9"),
        Migration(
            name: "v0027_findOwn",
            sql: EmbeddedFile("v0027_findOwn.sql").text,
            checksum: "b1046ef6b9c5fd3dc6590d1d303abd674029feee19b1943344ccf9931e6c14bd"),
        Migration(
            name: "v0028_findLive",
            sql: EmbeddedFile("v0028_findLive.sql").text,
            checksum: "6a470dd8fa81e34dae0a75aba54019669e1f80c69a04f7fb3a5b381f2ebed7f3"),
        Migration(
            name: "v0029_forgetTypes",
            sql: EmbeddedFile("v0029_forgetTypes.sql").text,
            checksum: "bf33be5e9d9aa5c18d38f7c499f8883163f6390ce9d3f064a5c3a1ec54f4d947"),
        Migration(
            name: "v0030_listSessions",
            sql: EmbeddedFile("v0030_listSessions.sql").text,
            checksum: "abfd68302b0f4d4437a15d9bf61c73abedb1a946a19cce3429410d7fc721af8a"),
        Migration(
            name: "v0031_pruneSessions",
            sql: EmbeddedFile("v0031_pruneSessions.sql").text,
            checksum: "e34512364b19820e48d9cdcc88d2790c7de5c22ce6a4475af2a46161caf73865"),
        Migration(
            name: "v0032_countZones",
            sql: EmbeddedFile("v0032_countZones.sql").text,
            checksum: "6a22cd1a60ce962b6c0ab6ca3326dfd0df974d07740c32e515825f68aae81b77"),
        Migration(
            name: "v0033_countGrants",
            sql: EmbeddedFile("v0033_countGrants.sql").text,
            checksum: "7d1b433a33ee018f768a21245c1c43250494d1c4ec27d1001d7488222aca2331"),
        Migration(
            name: "v0034_endVersions",
            sql: EmbeddedFile("v0034_endVersions.sql").text,
            checksum: "fbf3f6be6bd1cfa9cf2aea7ca56d38f345e0c0ec720e4e34d4a84263923c565f"),
        Migration(
            name: "v0035_forgetUsers",
            sql: EmbeddedFile("v0035_forgetUsers.sql").text,
            checksum: "247d82411ca93958a120b66a01b20989b061ff9cee8b819c27ed8a551fe53e7d"),
    ]
    /// Every released step of the schema on PostgreSQL.
    ///
    /// They are equal in meaning to what the steps in ``released`` lead to; a test compares the
    /// tables.
    package static let releasedOnPostgreSQL: [Migration] = [
        Migration(
            name: "p0001_createSchema",
            sql: EmbeddedFile("p0001_createSchema.sql").text,
            checksum: "e8dfcdd48d0ac80b7e8c38314edf7c934ac635bb0f2a8666ad47d73d6304ff5d"),
        Migration(
            name: "p0002_keepThrottles",
            sql: EmbeddedFile("p0002_keepThrottles.sql").text,
            checksum: "aab83cf95a6dc536bd6f3d6f57bc433968478464fcec418da6f6831d3d8545f5"),
        Migration(
            name: "p0003_nameEndpoints",
            sql: EmbeddedFile("p0003_nameEndpoints.sql").text,
            checksum: "c171cd81d086eaab407686bff25602350b583b3177a24a7c03541d5ac5b4f564"),
        Migration(
            name: "p0004_tellWarmth",
            sql: EmbeddedFile("p0004_tellWarmth.sql").text,
            checksum: "7e57fc87e9e19c5fc97a79abe795fc7be5862c2291b329941c00a8b48dff3209"),
        Migration(
            name: "p0005_tellSettings",
            sql: EmbeddedFile("p0005_tellSettings.sql").text,
            checksum: "a658acc58fb7a95aacc673412ddd7cc0eef6ec1b5b035690e1d138bb9acf943b"),
        Migration(
            name: "p0006_nameMachines",
            sql: EmbeddedFile("p0006_nameMachines.sql").text,
            checksum: "f064d7edc43143680a5ba5a1860fda0915a2b8473a71913834fe1e9bbfd93be2"),
        Migration(
            name: "p0007_markIndexed",
            sql: EmbeddedFile("p0007_markIndexed.sql").text,
            checksum: "dab514825d8ed7a26d858a6e128cf6750748b06d41068f56cd159365e51d899a"),
        Migration(
            name: "p0008_findOwn",
            sql: EmbeddedFile("p0008_findOwn.sql").text,
            checksum: "b1046ef6b9c5fd3dc6590d1d303abd674029feee19b1943344ccf9931e6c14bd"),
        Migration(
            name: "p0009_findLive",
            sql: EmbeddedFile("p0009_findLive.sql").text,
            checksum: "6a470dd8fa81e34dae0a75aba54019669e1f80c69a04f7fb3a5b381f2ebed7f3"),
        Migration(
            name: "p0010_forgetTypes",
            sql: EmbeddedFile("p0010_forgetTypes.sql").text,
            checksum: "4e77b55d5d3a2351b2524c41745a57ae5b293280f47766ebc5ecb63a8813134e"),
        Migration(
            name: "p0011_countOnce",
            sql: EmbeddedFile("p0011_countOnce.sql").text,
            checksum: "1687c58051e9dddff058f975cc15d8796ced3cd89efea1f5d05abe0b13ede236"),
        Migration(
            name: "p0012_listSessions",
            sql: EmbeddedFile("p0012_listSessions.sql").text,
            checksum: "abfd68302b0f4d4437a15d9bf61c73abedb1a946a19cce3429410d7fc721af8a"),
        Migration(
            name: "p0013_pruneSessions",
            sql: EmbeddedFile("p0013_pruneSessions.sql").text,
            checksum: "5747bdc332146ab4ea35dfc5a4f66fec0f7f43585feb952a6dafed23560e255d"),
        Migration(
            name: "p0014_countZones",
            sql: EmbeddedFile("p0014_countZones.sql").text,
            checksum: "3379a724928e5be1182f612e728adfcf99db2cfb6fbf9902de89edc6fcd6bb6a"),
        Migration(
            name: "p0015_countGrants",
            sql: EmbeddedFile("p0015_countGrants.sql").text,
            checksum: "d55f309075896796b93b507533ca5ca78b1a8f2d16a6e9efb39b461910f7b672"),
        Migration(
            name: "p0016_endVersions",
            sql: EmbeddedFile("p0016_endVersions.sql").text,
            checksum: "b1ca1e55efece95a60fd6391a8b93c6d8631c619d3e99462e3b1690762659a03"),
        Migration(
            name: "p0017_forgetUsers",
            sql: EmbeddedFile("p0017_forgetUsers.sql").text,
            checksum: "f46aee923337c5d872daddfd0891844434acc36b3aab99f77a6ac77e3ab894a1"),
    ]
}
