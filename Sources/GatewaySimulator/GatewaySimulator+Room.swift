// GatewaySimulator
