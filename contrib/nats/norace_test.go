//go:build !race

package troupenats

const raced = false
