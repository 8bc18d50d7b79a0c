// swift-tools-version: 6.2
import PackageDescription

// The rules that the compiler can hold (docs/style.md).
let houseRules: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .treatAllWarnings(as: .error),
]

let argumentParser = Target.Dependency.product(
    name: "ArgumentParser", package: "swift-argument-parser")
let asyncHTTPClient = Target.Dependency.product(
    name: "AsyncHTTPClient", package: "async-http-client")
let asyncAlgorithms = Target.Dependency.product(
    name: "AsyncAlgorithms", package: "swift-async-algorithms")
let certificates = Target.Dependency.product(name: "X509", package: "swift-certificates")
let asn1 = Target.Dependency.product(name: "SwiftASN1", package: "swift-asn1")
let collections = Target.Dependency.product(name: "DequeModule", package: "swift-collections")
let configuration = Target.Dependency.product(
    name: "Configuration", package: "swift-configuration")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let cryptoExtras = Target.Dependency.product(name: "CryptoExtras", package: "swift-crypto")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore = Target.Dependency.product(
    name: "HummingbirdCore", package: "hummingbird")
let hummingbirdTesting = Target.Dependency.product(
    name: "HummingbirdTesting", package: "hummingbird")
let hummingbirdTLS = Target.Dependency.product(name: "HummingbirdTLS", package: "hummingbird")
let jwt = Target.Dependency.product(name: "JWTKit", package: "jwt-kit")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let coreMetrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioHTTPTypes = Target.Dependency.product(
    name: "NIOHTTPTypes", package: "swift-nio-extras")
let nioHTTPTypesHTTP1 = Target.Dependency.product(
    name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras")
let nioTLS = Target.Dependency.product(name: "NIOTLS", package: "swift-nio")
let nioHTTP2 = Target.Dependency.product(name: "NIOHTTP2", package: "swift-nio-http2")
let nioHPACK = Target.Dependency.product(name: "NIOHPACK", package: "swift-nio-http2")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let serviceLifecycle = Target.Dependency.product(
    name: "ServiceLifecycle", package: "swift-service-lifecycle")
let unixSignals = Target.Dependency.product(
    name: "UnixSignals", package: "swift-service-lifecycle")

let package = Package(
    name: "belfry",
    // For applications that link PredicateLanguage and RelayModel: the standard library's own way
    // to look at the bytes of a text came with these.
    platforms: [.iOS(.v26), .macOS(.v26), .tvOS(.v26), .visionOS(.v26), .watchOS(.v26)],
    products: [
        .executable(name: "belfry", targets: ["belfry"]),
        .library(name: "GatewaySimulator", targets: ["GatewaySimulator"]),
        .library(name: "PredicateLanguage", targets: ["PredicateLanguage"]),
        .library(name: "RelayModel", targets: ["RelayModel"]),
    ],
    traits: [
        .trait(
            name: "PostgreSQL",
            description: "Stores on PostgreSQL, and following one: needs libpq."),
        .default(enabledTraits: ["PostgreSQL"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-async-algorithms", from: "1.1.0"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(
            url: "https://github.com/apple/swift-configuration", from: "1.4.0",
            traits: ["CommandLineArguments"]),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-extras.git", from: "1.34.1"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        // Its default has all of Foundation.
        .package(
            url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.0"),
    ],
    targets: [
        // The rooms, in the order of the walk (docs/architecture.md).
        .target(name: "RelayModel"),
        .target(name: "PredicateLanguage", dependencies: ["RelayModel"]),
        .target(
            name: "RegularExpressions", dependencies: ["RelayModel", "PredicateLanguage", "CRE2"]),
        .target(
            name: "Matching",
            dependencies: ["RelayModel", "PredicateLanguage", "RegularExpressions"]),
        .target(name: "ChangeSources", dependencies: ["RelayModel", crypto]),
        .target(
            name: "PostgresFollowing",
            dependencies: ["RelayModel", "ChangeSources", "PostgresLink"]),
        .target(
            name: "PostgresLink",
            dependencies: [
                "Platform", .target(name: "CPQ", condition: .when(traits: ["PostgreSQL"])), "CNoPQ",
            ]),
        .target(name: "Storage", dependencies: ["RelayModel", crypto]),
        .target(name: "StorageSQL", dependencies: ["RelayModel", "Storage", crypto]),
        .target(
            name: "StorageSQLite",
            dependencies: [
                "RelayModel", "Storage", "StorageSQL", "Migrations", "Platform", "CSQLite",
            ]),
        .target(
            name: "StoragePostgreSQL",
            dependencies: [
                "RelayModel", "Storage", "StorageSQL", "Migrations", "PostgresLink", "Platform",
                crypto,
            ]),
        .target(
            name: "Fanout",
            dependencies: [
                "RelayModel", "PredicateLanguage", "Matching", "Storage", crypto, logging, metrics,
                coreMetrics,
            ]),
        .target(
            name: "Live",
            dependencies: [
                "RelayModel", "PredicateLanguage", "Matching", "Storage", "Platform", crypto,
                logging, metrics,
            ]),
        .target(
            name: "Gateway",
            dependencies: ["RelayModel", "Platform", "CCurl", collections, crypto]),
        .target(
            name: "Delivery",
            dependencies: [
                "RelayModel", "Storage", "Gateway", collections, coreMetrics, logging, metrics,
                serviceLifecycle,
            ]),
        .target(
            name: "LogShipping",
            dependencies: [
                "RelayModel", "Storage", "StorageSQL", "StorageSQLite", asyncHTTPClient, crypto,
                logging, nioCore, nioHTTP1, nioPosix, nioSSL,
            ]),
        .target(
            name: "RelayServer",
            dependencies: [
                "EmbeddedFiles", "RelayModel", "PredicateLanguage", "RegularExpressions",
                "Matching", "ChangeSources", "PostgresFollowing", "Storage",
                "StoragePostgreSQL", "StorageSQL", "StorageSQLite", "LogShipping",
                "Fanout", "Live", "Gateway", "Delivery", asn1, certificates, collections,
                configuration, crypto, cryptoExtras, httpTypes,
                hummingbird, hummingbirdCore, hummingbirdTLS, logging, metrics, coreMetrics,
                nioCore, nioHTTP1, nioHTTPTypes, nioHTTPTypesHTTP1, nioPosix, nioSSL, nioTLS,
                serviceLifecycle, "Platform", "CMalloc",
            ],
            exclude: [
                "OpenAPI/openapi.json", "Live/belfry-live.js", "Live/belfry-live.d.ts",
                "Live/live-page.js", "Live/live.html", "Console/Pages",
            ],
            // A change's cost lies in the rooms that this one calls; it is half a megabyte.
            swiftSettings: [.unsafeFlags(["-Osize"], .when(configuration: .release))]),
        .target(
            name: "GatewaySimulator",
            dependencies: [
                asn1, certificates, crypto, logging, nioCore, nioHPACK, nioHTTP2, nioPosix, nioSSL,
            ]),
        .executableTarget(
            name: "belfry",
            dependencies: [
                "RelayModel", "PredicateLanguage", "RegularExpressions", "Matching",
                "ChangeSources", "PostgresLink", "PostgresFollowing", "Storage",
                "StoragePostgreSQL", "StorageSQL", "StorageSQLite", "LogShipping",
                "Fanout", "Gateway", "RelayServer", "GatewaySimulator", "CBuildStamp",
                argumentParser, asyncHTTPClient, crypto, logging, metrics, nioCore, nioHTTP1,
                nioPosix, nioSSL, serviceLifecycle, unixSignals,
            ],
            // Commands wait for people and for answers: they are to be small, and not quick.
            swiftSettings: [.unsafeFlags(["-Osize"], .when(configuration: .release))]),

        .target(name: "Platform", dependencies: ["CPlatform"]),

        // What is not Swift, and the schema.
        .target(name: "CBuildStamp"),
        .target(name: "CCurl", linkerSettings: [.linkedLibrary("curl")]),
        .target(name: "CNoPQ"),
        .target(name: "CPQ", linkerSettings: [.linkedLibrary("pq")]),
        .target(name: "CRE2", linkerSettings: [.linkedLibrary("re2")]),
        .target(name: "CSQLite", linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(name: "CPlatform"),
        .systemLibrary(name: "CMalloc"),
        .target(name: "CEmbeddedFiles"),
        .target(name: "EmbeddedFiles", dependencies: ["CEmbeddedFiles"]),
        .target(
            name: "Migrations", dependencies: ["EmbeddedFiles"], path: "Migrations",
            exclude: ["sql", "postgresql"]),

        // The tests: one suite for each room, and those that see the whole project.
        .target(
            name: "RelayTestKit",
            dependencies: [
                "RelayModel", "Storage", "StorageSQL", "StorageSQLite", "Gateway",
                "GatewaySimulator",
                asyncHTTPClient, crypto, logging, nioCore, nioHTTP1,
            ],
            path: "Tests/RelayTestKit", exclude: ["Golden"]),
        .testTarget(name: "RelayModelTests", dependencies: ["RelayModel", "RelayTestKit"]),
        .testTarget(
            name: "PredicateLanguageTests",
            dependencies: [
                "RelayModel", "PredicateLanguage", "RegularExpressions", "RelayTestKit",
            ]),
        .testTarget(
            name: "MatchingTests",
            dependencies: [
                "RelayModel", "PredicateLanguage", "RegularExpressions", "Matching", "RelayTestKit",
                "CMalloc",
            ]),
        .testTarget(
            name: "ChangeSourcesTests",
            dependencies: ["RelayModel", "ChangeSources", "RelayTestKit"],
            exclude: ["Fixtures"]),
        .testTarget(
            name: "PostgresFollowingTests",
            dependencies: [
                "RelayModel", "ChangeSources", "PostgresLink", "PostgresFollowing", "RelayServer",
                "StorageSQL", "StorageSQLite", "GatewaySimulator", "RelayTestKit", logging,
                serviceLifecycle,
            ]),
        .testTarget(
            name: "StoragePostgreSQLTests",
            dependencies: [
                "RelayModel", "Storage", "StorageSQL", "StoragePostgreSQL", "StorageSQLite",
                "Migrations", "PostgresLink", "RelayTestKit", grdb,
            ]),
        .testTarget(
            name: "StorageTests", dependencies: ["RelayModel", "Storage", "RelayTestKit"]),
        .testTarget(
            name: "StorageSQLiteTests",
            dependencies: [
                "RelayModel", "Storage", "StorageSQL", "StorageSQLite", "Migrations", "CSQLite",
                "RelayTestKit",
                crypto, grdb,
            ]),
        .testTarget(
            name: "LogShippingTests",
            dependencies: [
                "RelayModel", "Storage", "StorageSQL", "StorageSQLite", "LogShipping",
                "RelayTestKit", logging, nioCore, nioHTTP1, nioPosix,
            ]),
        .testTarget(
            name: "FanoutTests",
            dependencies: [
                "RelayModel", "PredicateLanguage", "RegularExpressions", "Matching", "Storage",
                "StorageSQL", "StorageSQLite", "StoragePostgreSQL", "Fanout",
                "RelayTestKit", grdb, logging,
            ]),
        .testTarget(
            name: "LiveTests",
            dependencies: [
                "RelayModel", "PredicateLanguage", "RegularExpressions", "Matching", "Storage",
                "StorageSQL", "StorageSQLite", "Live", "RelayTestKit", "SimulationKit", logging,
            ]),
        .testTarget(
            name: "GatewayTests",
            dependencies: [
                "RelayModel", "CCurl", "Gateway", "GatewaySimulator", "RelayTestKit", crypto,
                nioCore, nioHPACK, nioPosix, nioSSL,
            ]),
        .testTarget(
            name: "GatewaySimulatorTests",
            dependencies: [
                "GatewaySimulator", crypto, nioCore, nioHPACK, nioHTTP2, nioPosix, nioSSL,
            ]),
        .testTarget(
            name: "DeliveryTests",
            dependencies: [
                "RelayModel", "Storage", "StorageSQL", "StorageSQLite", "Gateway", "Delivery",
                "RelayTestKit",
                coreMetrics, logging,
            ]),
        .testTarget(
            name: "RelayServerTests",
            dependencies: [
                "EmbeddedFiles", "RelayModel", "RelayServer", "Storage", "StorageSQL",
                "StorageSQLite",
                "StoragePostgreSQL", "Gateway", "Delivery", "Live",
                "GatewaySimulator", "RelayTestKit", coreMetrics, crypto, httpTypes, hummingbird,
                hummingbirdTesting, jwt, logging, nioCore, nioEmbedded, nioHTTPTypes,
                nioPosix, nioSSL, serviceLifecycle,
            ]),
        .testTarget(
            name: "CommandLineTests",
            dependencies: [
                "belfry", "RelayModel", "RelayServer", "Storage", "StorageSQL", "StorageSQLite",
                "LogShipping", "RelayTestKit", "GatewaySimulator", "PostgresFollowing",
                argumentParser, asyncHTTPClient, nioCore, nioHTTP1,
            ]),
        .target(
            name: "SimulationKit",
            dependencies: [
                "RelayModel", "Storage", "StorageSQL", "StorageSQLite", "StoragePostgreSQL",
                "Fanout", "Live", "Gateway", "Delivery",
                "RelayTestKit", logging,
            ],
            path: "Tests/SimulationKit"),
        .executableTarget(
            name: "simulate", dependencies: ["SimulationKit", argumentParser],
            path: "Tests/Simulate"),
        .testTarget(name: "SimulationTests", dependencies: ["SimulationKit"]),
        .executableTarget(
            name: "bench",
            dependencies: [
                "RelayModel", "PredicateLanguage", "RegularExpressions", "Matching",
                "ChangeSources", "Storage",
                "StorageSQL", "StorageSQLite", "StoragePostgreSQL", "Fanout", "Gateway",
                "Delivery", "Live", "RelayServer",
                "GatewaySimulator", argumentParser, coreMetrics, crypto, logging, metrics,
                nioCore, nioPosix, nioSSL, serviceLifecycle,
            ],
            path: "Tests/Benchmarks", exclude: ["count-allocations", "engines", "measure"]),
        .testTarget(name: "TidyTests"),
    ],
    swiftLanguageModes: [.v6]
)

for target in package.targets
where !target.name.hasPrefix("C") || target.name == "ChangeSources"
    || target.name == "CommandLineTests"
{
    target.swiftSettings = (target.swiftSettings ?? []) + houseRules
}

// Rooms in which the compiler asks that every unsafe expression is marked (docs/architecture.md).
let safeRooms = [
    "RelayModel", "PredicateLanguage", "ChangeSources", "PostgresFollowing", "Fanout", "Live",
    "Delivery", "LogShipping", "RelayServer", "GatewaySimulator", "Migrations", "StorageSQL",
    "StoragePostgreSQL", "belfry",
]
for target in package.targets where safeRooms.contains(target.name) {
    target.swiftSettings = (target.swiftSettings ?? []) + [.strictMemorySafety()]
}
