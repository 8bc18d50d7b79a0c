/// Whether secrets are written out.
enum SecretForm {
    /// For the registry.
    case included
    /// For people.
    case hidden
}
