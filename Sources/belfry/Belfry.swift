import ArgumentParser

@main
struct Belfry: ParsableCommand {}
