// Command compare measures Troupe against what people use, and prints one page:
//
//	go run ./bench/compare                 # what is installed
//	go run ./bench/compare -install        # fetches the pinned versions from npm before
//	go run ./bench/compare -install -write docs/benchmarks.md -readme README.md
//	go run ./bench/compare -from docs/benchmarks.md -write docs/benchmarks.md -readme README.md   # after a change of the page's texts
//
// The page names each program that is missing. -only takes some of the sections: calls, start,
// sessions, batch, recovery, faults, agents. Figures of memory, and those of agents, need Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/peers"
)

func main() {
	fast.Play()
	peers.Play()
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	if role := os.Getenv(roleEnv); role != "" {
		_ = os.Unsetenv(roleEnv) // not for agents; it can fail for bad names only
		if role == doPeers {
			return asParent(ctx, os.Args[1])
		}
		return asHost(ctx, role, os.Args[1:])
	}
	b := bench{sizes: whole}
	if os.Getenv("TROUPE_SMOKE") != "" {
		b.sizes, b.smoke = least, true
	}
	flag.StringVar(&b.packages, "packages", cacheDir(), "the directory with the vendors' SDKs and the other agents")
	flag.BoolVar(&b.install, "install", false, "fetch what is missing from npm")
	only := flag.String("only", "", "names of sections, with commas between; default: all")
	write := flag.String("write", "", "write the page to this file instead of stdout")
	readme := flag.String("readme", "", "renew the tables in this README")
	from := flag.String("from", "", "measure nothing: make the page again from the data in this page")
	flag.IntVar(&b.rounds, "rounds", b.rounds, "how often each program runs; the median counts")
	flag.Parse()
	if flag.NArg() > 0 || b.rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := b.find(ctx, *from, *only); err != nil {
		return err
	}
	return b.report.write(*write, *readme)
}

// find reads the figures from a page, or measures them if from is empty.
func (b *bench) find(ctx context.Context, from, only string) error {
	if from == "" {
		return b.measure(ctx, only)
	}
	old, err := os.ReadFile(from)
	if err == nil {
		b.report, err = read(string(old))
	}
	return err
}

// write writes the page, or prints it if the name is empty, and renews the README, if there is a name.
func (r *report) write(name, readme string) error {
	if readme != "" {
		old, err := os.ReadFile(readme)
		if err != nil {
			return err
		}
		renewed, err := renew(string(old), r)
		if err != nil {
			return err
		}
		if err := os.WriteFile(readme, []byte(renewed), 0o600); err != nil {
			return err
		}
	}
	text, err := page(r)
	if err != nil {
		return err
	}
	if name == "" {
		_, err = fmt.Print(text)
		return err
	}
	return os.WriteFile(name, []byte(text), 0o600)
}

// measure runs the sections.
func (b *bench) measure(ctx context.Context, only string) (err error) {
	b.report = &report{
		Date: time.Now().Format(time.DateOnly), Machine: thisMachine(), Load: [2]string{load()}, Sections: map[string]*section{},
		Versions: []version{{"Troupe", commit()}},
	}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.packages, err = filepath.Abs(b.packages); err != nil {
		return err
	}
	sdks := filepath.Join(b.packages, "sdks")
	if b.hosts, err = findHosts(ctx, sdks, b.install); err != nil {
		return err
	}
	b.report.Versions = append(b.report.Versions, vendors(ctx, b.hosts)...)
	all := []struct {
		name string
		run  func(context.Context) error
	}{{calls, b.calls}, {starts, b.start}, {sessions, b.sessions}, {batches, b.batch}, {recoveries, b.recovery}, {faults, b.faults}, {tasks, b.agents}}
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	for _, name := range wanted {
		if !slices.ContainsFunc(forms, func(f form) bool { return f.name == name }) {
			return fmt.Errorf("no section is named %s", name)
		}
	}
	for _, s := range all {
		if len(wanted) > 0 && !slices.Contains(wanted, s.name) {
			continue
		}
		began := time.Now()
		if err := s.run(ctx); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %.0f s\n", s.name, time.Since(began).Seconds())
	}
	b.report.Load[1] = load()
	return errors.Join(context.Cause(ctx))
}
