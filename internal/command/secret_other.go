//go:build !linux

package command

func unreadable() {}
