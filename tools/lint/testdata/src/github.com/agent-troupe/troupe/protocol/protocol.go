package protocol

type Frame struct{}
