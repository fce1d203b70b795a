package actor

type PID struct{ ID string }

type Context interface{ Self() *PID }
