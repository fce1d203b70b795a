//go:build !linux

package main

func unreadable() {}
