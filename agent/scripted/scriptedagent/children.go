package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
)

// childArg is the hidden argument that makes this binary a child of itself.
const childArg = "--scriptedagent-child"

// defaultLifetime ends a child that was not swept.
const defaultLifetime = 10 * time.Minute

// child is a child with the time at which it ends. It is a time and not a span, because
// the successors of one that forks share it: if each subtracted its own sleep, unswept
// ones would run for as long as a busy machine takes to start them all.
type child struct {
	scripted.Child
	Until time.Time
}

// spawn starts a child: this binary again, with the child's token and
// description in its arguments.
func spawn(c scripted.Child) error {
	lifetime := c.Lifetime
	if lifetime <= 0 {
		lifetime = defaultLifetime
	}
	return child{c, time.Now().Add(lifetime)}.spawn()
}

func (c child) spawn() error {
	cmd, err := c.command()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a child: %w", err)
	}
	if c.Reparent { // what was started only starts the child, and is gone
		return cmd.Wait()
	}
	return cmd.Process.Release()
}

func (c child) command() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this binary: %w", err)
	}
	description, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("describe a child: %w", err)
	}
	cmd := exec.Command(self, childArg, c.Token, string(description))
	if c.HoldStdout {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	detach(cmd, c.Session)
	return cmd, nil
}

// childMain is the child.
func childMain(args []string) int {
	var c child
	if len(args) != 2 || json.Unmarshal([]byte(args[1]), &c) != nil {
		return 2
	}
	if c.TrapTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	if c.Reparent {
		c.Reparent = false
		if c.spawn() != nil {
			return 1
		}
		return 0
	}
	left := time.Until(c.Until)
	if c.Forks <= 0 || c.Forks >= left {
		time.Sleep(left)
		return 0
	}
	time.Sleep(c.Forks)
	if c.spawn() != nil {
		return 1
	}
	return 0
}
