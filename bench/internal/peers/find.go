package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/conformance"
)

// find is the command that starts the agent. It is installed if that is asked for and it is not there.
func (b *bench) find(ctx context.Context, p peer, install bool) ([]string, error) {
	if p.own() {
		self, err := os.Executable()
		return []string{self}, err
	}
	if p.npm == "" {
		path, err := conformance.Claude.Installed()
		return []string{path}, err
	}
	if b.Agents == "" {
		return nil, errors.New("no -agents")
	}
	dir, err := filepath.Abs(filepath.Join(b.Agents, p.name))
	if err != nil {
		return nil, err
	}
	pattern := filepath.Join(dir, p.program)
	found, err := filepath.Glob(pattern)
	if err == nil && len(found) == 0 && install {
		if err = npm(ctx, dir, p.npm+"@"+p.version); err == nil {
			found, err = filepath.Glob(pattern)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no %s", pattern)
	}
	if !p.node {
		return found[:1], nil
	}
	node, err := conformance.Node.Installed()
	return []string{node, found[0]}, err
}

// npm installs a package below dir. Its error has the line that names the reason.
func npm(ctx context.Context, dir, pkg string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "installing", pkg)
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--prefix", dir, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install %s: %w: %s", pkg, err, why(string(out)))
	}
	return nil
}

// why is the line that names the error, of what a program has written, and else the last one.
func why(out string) string {
	last := ""
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line == "" || strings.Contains(line, "complete log of this run") {
			continue
		}
		if strings.Contains(line, "Error: ") {
			return line
		}
		last = line
	}
	return last
}
