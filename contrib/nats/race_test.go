//go:build race

package troupenats

const raced = true
