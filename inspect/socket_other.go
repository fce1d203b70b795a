//go:build !unix

package inspect

import (
	"fmt"
	"net"

	"github.com/agent-troupe/troupe/session"
)

// openSocket refuses: file modes do not protect a socket on this system.
func openSocket(string) (net.Listener, error) { return nil, noSockets() }

func checkDir(string) error { return noSockets() }

func isDead(error) bool { return false }

func noSockets() error {
	return fmt.Errorf("inspect: %w", &session.ConfigError{
		Option: "Socket", Problem: "a socket cannot be kept from other users on this system", Fix: "use Address and Token",
	})
}
