package import Gateway
import RelayModel

/// Sends each push through the gateway of its device.
package struct GatewaySwitch: PushGateway {
    private let apns: any PushGateway
    private let courier: any PushGateway

    /// Joins two gateways, which answer to the same sink.
    package init(apns: any PushGateway, courier: any PushGateway) {
        self.apns = apns
        self.courier = courier
    }

    /// Hands each attempt to its gateway.
    package func send(_ requests: [PushRequest]) {
        var pushed = requests
        let half = pushed.partition { $0.gateway == .courier }
        if half < pushed.count { courier.send(Array(pushed[half...])) }
        if half > 0 { apns.send(Array(pushed[..<half])) }
    }

    /// Shuts down both.
    ///
    /// The courier waits for no answers.
    package func shutDown(within bound: Duration, silence: Duration) async {
        await courier.shutDown(within: bound)
        await apns.shutDown(within: bound, silence: silence)
    }
}
