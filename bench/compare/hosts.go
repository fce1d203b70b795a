package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Columns of the tables.
const (
	bareLoop  = "bare Go loop"
	troupe    = "Troupe"
	keptJob   = "Troupe, kept"
	claudeSDK = "Claude Agent SDK"
	qoderSDK  = "Qoder SDK"
)

// Pinned versions of what -install fetches from npm.
const (
	claudePackage = "@anthropic-ai/claude-agent-sdk"
	claudeVersion = "0.3.329"
	qoderPackage  = "@qoder-ai/qoder-agent-sdk"
	qoderVersion  = "1.0.39"
)

var packages = []string{
	claudePackage + "@" + claudeVersion, qoderPackage + "@" + qoderVersion,
	"zod@4.6.7", "@modelcontextprotocol/sdk@^1.29.0", "@anthropic-ai/sdk@>=0.93.0", // which the first two want beside them
}

//go:embed host.mjs
var hostScript []byte

// host is a program that drives agents.
type host struct {
	name string
	err  error // why it cannot be measured
	// command is the host's command with an agent; args follow.
	command func(agent string) []string
	env     []string
	limit   time.Duration // of one run; 0: two minutes
}

// own says that the host is part of this repository, so that its failure is one of the program.
func (h *host) own() bool { return h.name == bareLoop || h.name == troupe }

// roleEnv makes this program a host of this repository.
const roleEnv = "BENCH_COMPARE"

// findHosts are all hosts, the reference first. install fetches missing packages.
func findHosts(ctx context.Context, dir string, install bool) ([]*host, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all []*host
	for _, name := range []string{bareLoop, troupe} {
		all = append(all, &host{name: name, env: []string{roleEnv + "=" + name}, command: func(agent string) []string { return []string{self, agent} }})
	}
	script, err := prepare(ctx, dir, install)
	node, nodeErr := exec.LookPath("node")
	for _, v := range []struct{ name, vendor, pkg, version string }{
		{claudeSDK, "claude", claudePackage, claudeVersion}, {qoderSDK, "qoder", qoderPackage, qoderVersion},
	} {
		h := &host{name: v.name, err: errors.Join(err, nodeErr), command: func(agent string) []string {
			return []string{node, "--expose-gc", script, v.vendor, agent}
		}}
		if h.err == nil {
			h.err = installed(dir, v.pkg, v.version)
		}
		all = append(all, h)
	}
	return all, nil
}

// prepare puts the script beside the packages that it imports.
func prepare(ctx context.Context, dir string, install bool) (script string, err error) {
	if install && (installed(dir, claudePackage, claudeVersion) != nil || installed(dir, qoderPackage, qoderVersion) != nil) {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return "", err
		}
		fmt.Fprintln(os.Stderr, "installing", strings.Join(packages[:2], ", "))
		args := []string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional", "--legacy-peer-deps", "--prefix", dir}
		if out, err := exec.CommandContext(ctx, "npm", append(args, packages...)...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("npm install: %w: %s", err, lastLine(string(out)))
		}
	}
	if _, err := os.Stat(dir); err != nil {
		return "", errors.New("not installed: -install fetches it from npm")
	}
	script = filepath.Join(dir, "host.mjs")
	return script, os.WriteFile(script, hostScript, 0o600)
}

// installed is nil if the package is there in that version.
func installed(dir, pkg, version string) error {
	data, err := os.ReadFile(filepath.Join(dir, "node_modules", filepath.FromSlash(pkg), "package.json"))
	if err != nil {
		return errors.New("not installed: -install fetches it from npm")
	}
	var is struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(data, &is); err != nil {
		return err
	}
	if is.Version != version {
		return fmt.Errorf("version %s is installed, not %s", is.Version, version)
	}
	return nil
}

// run runs the host with an agent, and reads the line that it prints.
func (h *host) run(ctx context.Context, agent string, env []string, line any, args ...string) error {
	if h.err != nil {
		return h.err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(h.limit, 2*time.Minute))
	defer cancel()
	argv := append(h.command(agent), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), h.env...), env...)
	cmd.WaitDelay = time.Second
	var notes strings.Builder
	cmd.Stderr = &notes
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", h.name, strings.Join(args, " "), err, errorLine(notes.String()))
	}
	if err := json.Unmarshal(out, line); err != nil {
		return fmt.Errorf("%s printed %q: %w", h.name, out, err)
	}
	return nil
}

// errorLine is the line of some output that names the error, else the last one.
func errorLine(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "Error: ") {
			return strings.TrimSpace(line)
		}
	}
	return lastLine(out)
}

func lastLine(out string) string {
	out = strings.TrimSpace(out)
	return out[strings.LastIndexByte(out, '\n')+1:]
}

// vendors are the versions of what drives and what is driven.
func vendors(ctx context.Context, hosts []*host) []version {
	var all []version
	for _, h := range hosts {
		switch {
		case h.err != nil:
		case h.name == claudeSDK:
			all = append(all, version{claudePackage, claudeVersion})
		case h.name == qoderSDK:
			all = append(all, version{qoderPackage, qoderVersion})
		}
	}
	if node, err := exec.CommandContext(ctx, "node", "--version").Output(); err == nil {
		all = append(all, version{"Node.js", strings.TrimSpace(string(node))})
	}
	return all
}
