package import RelayModel

/// Everything that a store registers: who may do what, and who wants to be told.
///
/// Any process may ask any of it at any time. Who needs less than everything says so by one of the
/// protocols that this one combines.
package protocol Registry:
    ContainerRegistry, AccessKeyRegistry, SourceRegistry, SubscriptionRegistry, DeviceRegistry,
    ParkedChangeRegistry, DeliveryRegistry, DeadLetterRegistry, ProviderTokenRegistry,
    AdministrationRegistry, CourierQueue, InboxRegistry, SessionRegistry, PastRegistry,
    ListRegistry, ClientReceiptRegistry
{
    /// Bytes that no other store has, also none that was made of a copy of this one: what clients
    /// keep of one store means nothing in another.
    var storeIdentity: UUIDBytes { get }
}
