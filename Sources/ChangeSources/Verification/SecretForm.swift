/// Whether secrets are included in a JSON form.
enum SecretForm {
    /// Included, for the registry.
    case included
    /// Hidden, for display.
    case hidden
}
