import ArgumentParser

/// The commands that administer a relay.
enum AdministrationCommands {
    static let all: [any ParsableCommand.Type] = [
        OverviewCommand.self, DoctorCommand.self, ContainersCommand.self, KeysCommand.self,
        SourcesCommand.self, SchemaCommand.self, ExplainCommand.self, RehearseCommand.self,
        SubscriptionsCommand.self, DevicesCommand.self, ChangesCommand.self,
        DeliveriesCommand.self, NotificationsCommand.self, SessionsCommand.self,
        LiveCommand.self, LogCommand.self, CertificatesCommand.self,
        TokensCommand.self, AuditCommand.self, SecretsCommand.self,
        MigrateCommand.self, BackupCommand.self, BackupsCommand.self, RestoreCommand.self,
        CheckCommand.self, MoveCommand.self, NodesCommand.self, ShardsCommand.self,
    ]
}
