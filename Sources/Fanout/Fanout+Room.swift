// Fanout
