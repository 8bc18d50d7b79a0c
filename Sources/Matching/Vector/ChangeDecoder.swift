import RelayModel

/// Decodes changes into slots and hashed keys.
struct ChangeDecoder {
    let catalog: Catalog
    let seed: UInt64

    /// Decodes a change for the plan of its record type.
    ///
    /// If `now` is `nil`, the function `now()` in predicates is the moment of the change.
    func decode(_ change: RecordChange, now: Timestamp?, into decoded: DecodedChange) {
        decoded.removeAll()
        decoded.catalogVersion = catalog.version
        decoded.source = change
        decoded.operation = FiresOn(change.operation)
        decoded.now = now ?? change.occurredAt
        // Without the image that is to be judged, no field is known.
        let image = change.judgedImage ?? RecordImage([:], completeness: .partial)
        decoded.isPartial = image.completeness == .partial
        let plan = catalog.plan(of: change.recordType)
        decoded.fields = image.fields
        if catalog.readsSystemFields(plan) {
            decoded.judgedFields = change.judgedFields(change.judgedSide, at: decoded.now)
        }
        if let plan { slots(of: image, plan, decoded) }
        probes(of: change, plan, decoded)
    }

    private func slots(of image: RecordImage, _ plan: Int, _ decoded: DecodedChange) {
        let count = catalog.plans[plan].paths.count
        let absent = FieldSlot(decoded.isPartial ? .unknown : .null)
        decoded.slots.reserve(count)
        for _ in 0..<count { decoded.slots.append(absent) }
        if count * 2 < image.fields.count {
            for path in 0..<count where catalog.plans[plan].paths[path].isPlain {
                let name = catalog.plans[plan].paths[path].field
                guard let value = image.fields[name] else { continue }
                decoded.slots[path] = decoded.encoder.encode(value)
            }
        } else {
            for (name, value) in image.fields {
                guard let path = catalog.plans[plan].path(of: name) else { continue }
                decoded.slots[path] = decoded.encoder.encode(value)
            }
        }
        for path in catalog.plans[plan].systemPaths {
            // A system field without a known value is unknown, even if the image is full.
            let value = decoded.judgedFields?[catalog.plans[plan].paths[path].field]
            decoded.slots[path] = value.map { decoded.encoder.encode($0) } ?? FieldSlot(.unknown)
        }
        if !catalog.plans[plan].derived.isEmpty {
            SlotDerivation(plan: catalog.plans[plan]).derive(decoded)
        }
    }

    /// Adds the keys in all compartments of the change, for its record type and for all types.
    func probes(of change: RecordChange, _ plan: Int?, _ decoded: DecodedChange) {
        probes(change.database, change.owner, change.recordID.zoneID, plan, decoded)
    }

    /// Adds these keys for a change that is given by its parts.
    func probes(
        _ database: DatabaseScope, _ owner: UserID?, _ zoneID: ZoneID, _ plan: Int?,
        _ decoded: DecodedChange
    ) {
        decoded.plan = plan ?? 0
        // The change has been given up.
        if decoded.isCutShort { return }
        let writer = ProbeWriter(catalog: catalog, seed: seed)
        let owner = database == .public ? nil : owner
        // A change in a private or shared database without a known owner fires no subscription.
        if database != .public, owner == nil { return }
        if database == .public { write(0, plan, writer, decoded) }
        guard catalog.hasCompartments else { return }
        let whole = Compartment(database: database, owner: owner, zoneID: nil)
        if !whole.isCommon, let number = catalog.compartment(whole) {
            write(number, plan, writer, decoded)
        }
        let zone = Compartment(database: database, owner: owner, zoneID: zoneID)
        if let number = catalog.compartment(zone) { write(number, plan, writer, decoded) }
    }

    private func write(
        _ compartment: UInt32, _ plan: Int?, _ writer: ProbeWriter, _ decoded: DecodedChange
    ) {
        if let plan { writer.write(plan: plan, compartment: compartment, to: decoded) }
        writer.writeEvery(compartment: compartment, to: decoded)
    }
}

extension ProbeWriter {
    /// Adds the keys of subscriptions to all record types.
    func writeEvery(compartment: UInt32, to change: DecodedChange) {
        write(plan: 0, compartment: compartment, to: change)
    }
}
