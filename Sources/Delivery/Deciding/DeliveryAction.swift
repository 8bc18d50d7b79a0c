import Gateway
import RelayModel
import Storage

/// What somebody must do after ``DeliveryState`` has decided, in the order in which it stands.
enum DeliveryAction: Sendable {
    /// The flow hears that these pushes of the log are about to be with the gateway.
    case began([PushRequest])
    /// The flow hears that these pushes of the log are not with the gateway any more.
    case ended([PushEnd])
    /// Whoever listens hears what was answered.
    case tellAnswers([AnsweredAttempt])
    /// The metrics count what happened.
    case count(DeliveryMeter.Tally)
    /// The metrics show how many halts are in force.
    case showHalts(Int)
    /// The metrics show where the progress stands, and how much is open.
    case showProgress(ProgressMark, inFlight: Int)
    /// The log tells of a halt that is new.
    case tellHalt(OutcomeJudge.Halt, of: ContainerKey)
    /// The log tells what the gateway refused.
    case tellAlarm(GatewayAlarms.Alarm)
    /// The log tells that something goes on.
    case tellEndOfHalt
    /// Somebody who waits looks again.
    case wake(Waiter)

    /// Who waits for what others do.
    enum Waiter: Sendable, Hashable {
        /// The loop that records steps: something is settled.
        case steps
        /// Whoever hands over what the log owes: there is room.
        case log
        /// Whoever hands over what ranges owe: there is room.
        case ranges
        /// The loop that sends retries: others may be due, or may go.
        case retries
    }
}

/// What was admitted: what follows from it, and then what is sent.
struct Admission: Sendable {
    /// How many were taken; the others find no room, or stay where they are.
    var taken = 0
    /// What is to be done before anything is sent.
    var actions: [DeliveryAction] = []
    /// What is handed to the gateway.
    var requests: [PushRequest] = []
}

extension HaltNews {
    /// How it is told, with what the gateway said that needs a person; `halts` are in force now.
    func actions(halts: Int, _ alarms: [GatewayAlarms.Alarm] = []) -> [DeliveryAction] {
        var actions = begun.map { DeliveryAction.tellHalt($0.halt, of: $0.container) }
        actions += alarms.map { .tellAlarm($0) }
        if !begun.isEmpty || hasEnded { actions.append(.showHalts(halts)) }
        if hasEnded { actions += [.tellEndOfHalt, .wake(.retries)] }
        return actions
    }
}
