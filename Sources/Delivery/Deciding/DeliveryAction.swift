import Gateway
import RelayModel
import Storage

/// An action that the shell must perform after a decision of ``DeliveryState``, in the given order.
enum DeliveryAction: Sendable {
    /// Tells the flow that these pushes of the log are about to be with the gateway.
    case began([PushRequest])
    /// Tells the flow that these pushes of the log are no longer with the gateway.
    case ended([PushEnd])
    /// Tells the observer what was answered.
    case tellAnswers([AnsweredAttempt])
    /// Counts in the metrics.
    case count(DeliveryMeter.Tally)
    /// Shows the number of halts in force in the metrics.
    case showHalts(Int)
    /// Shows the progress and the number of open deliveries in the metrics.
    case showProgress(ProgressMark, inFlight: Int)
    /// Logs a new halt.
    case tellHalt(OutcomeJudge.Halt, of: ContainerKey)
    /// Logs what the gateway refused.
    case tellAlarm(GatewayAlarms.Alarm)
    /// Logs that deliveries go on.
    case tellEndOfHalt
    /// Wakes a waiting task.
    case wake(Waiter)

    /// A task that waits.
    enum Waiter: Sendable, Hashable {
        /// The loop that records steps.
        ///
        /// Something was settled.
        case steps
        /// The task that hands over what the log owes.
        ///
        /// There is room.
        case log
        /// The task that hands over what ranges owe.
        ///
        /// There is room.
        case ranges
        /// The loop that sends retries.
        ///
        /// Others may be due, or may go now.
        case retries
    }
}

/// The result of admitting deliveries: the actions that follow, and then the requests to send.
struct Admission: Sendable {
    /// The number of deliveries that were taken.
    ///
    /// The others find no room, or stay where they are.
    var taken = 0
    /// The actions to perform before anything is sent.
    var actions: [DeliveryAction] = []
    /// The requests to hand to the gateway.
    var requests: [PushRequest] = []
}

extension HaltNews {
    /// Returns the actions for these news, with the alarms that a person should see.
    ///
    /// `halts` is the number of halts in force now.
    func actions(halts: Int, _ alarms: [GatewayAlarms.Alarm] = []) -> [DeliveryAction] {
        var actions = begun.map { DeliveryAction.tellHalt($0.halt, of: $0.container) }
        actions += alarms.map { .tellAlarm($0) }
        if !begun.isEmpty || hasEnded { actions.append(.showHalts(halts)) }
        if hasEnded { actions += [.tellEndOfHalt, .wake(.retries)] }
        return actions
    }
}
