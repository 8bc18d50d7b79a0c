package import RelayModel

/// Everything that a store registers: containers, credentials, sources, subscriptions and devices.
///
/// Any task may call it at any time. Code that needs only a part uses one of the protocols that
/// this one combines.
package protocol Registry:
    ContainerRegistry, AccessKeyRegistry, SourceRegistry, SubscriptionRegistry, DeviceRegistry,
    ParkedChangeRegistry, DeliveryRegistry, DeadLetterRegistry, ProviderTokenRegistry,
    AdministrationRegistry, CourierQueue, InboxRegistry, SessionRegistry, PastRegistry,
    ListRegistry, ClientReceiptRegistry
{
    /// Bytes that no other store has, not even one made from a copy of this store.
    ///
    /// What clients remember of one store, such as a token, is meaningless in another.
    var storeIdentity: UUIDBytes { get }
}
