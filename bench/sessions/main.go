// Command sessions measures how long it takes to list 10,000 sessions and to read a
// transcript of 100 MB, and how much memory:
//
//	go run ./bench/sessions                        # this library alone
//	go run ./bench/sessions -sdk DIR               # beside the vendor's functions on the same files
//	go run ./bench/sessions -stores                # also through session stores, of the same sessions
//	go run ./bench/sessions -keep DIR              # leave the files in DIR
//
// With -stores the directory is one as store.Dir has it, and the memory is filled before the time is
// taken; its content counts as memory. SQLite is a separate module, with another program for the
// files that -keep leaves: contrib/sqlite/bench.
//
// DIR has node_modules with @anthropic-ai/claude-agent-sdk, for which node must be on PATH:
//
//	npm install --prefix DIR @anthropic-ai/claude-agent-sdk@0.3.329
//
// Each measurement runs in a separate process, and is the best of three. It prints a line of JSON for
// each: seconds of the call without the start of the process, and the largest resident memory of the
// process in MB.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// child is the variable that makes this program one measurement.
const child = "TROUPE_BENCH_SESSIONS"

// large is the session of 100 MB; it is newer than all others.
const large = "5e550000-0000-4000-8000-999999999999"

// figure is the result of one measurement.
type figure struct {
	By      string  `json:"by"`   // troupe, troupe and the store, or the vendor's package
	Task    string  `json:"task"` // list or read
	Count   int     `json:"count"`
	Seconds float64 `json:"seconds"`
	PeakMB  float64 `json:"peak_mb"`
}

func main() {
	log.SetFlags(0)
	if task := os.Getenv(child); task != "" {
		if err := measureHere(task, os.Args[1], os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	sessions := flag.Int("n", 10000, "sessions to list")
	size := flag.Int64("mb", 100, "size of the transcript to read, in MB")
	sdk := flag.String("sdk", "", "directory with node_modules of the vendor's SDK; empty: this library alone")
	stores := flag.Bool("stores", false, "list and read also through session stores: a directory and memory")
	keep := flag.String("keep", "", "directory for the files, which stay there; empty: they are removed")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if os.Getenv("TROUPE_SMOKE") != "" {
		*sessions, *size, *stores = 50, 1, true
	}
	if err := run(*sessions, *size<<20, *sdk, *keep, *stores); err != nil {
		log.Fatal(err)
	}
}

func run(sessions int, size int64, sdk, keep string, stores bool) error {
	list := keep
	if keep == "" {
		var err error
		if list, err = os.MkdirTemp("", "troupe-bench"); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(list) }()
	}
	read := filepath.Join(list, "large")
	made, err := writeSessions(list, sessions)
	if err != nil {
		return err
	}
	if _, err := writeTranscript(read, large, size); err != nil {
		return err
	}
	log.Printf("%d sessions of %d MB, one of %d MB", sessions, made>>20, size>>20)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	kinds := []string{""}
	if stores {
		kinds = []string{"", "dir", "memory"}
	}
	for _, task := range []struct{ name, root string }{{"list", list}, {"read", read}} {
		for _, kind := range kinds {
			if err := best(func() *exec.Cmd {
				cmd := exec.Command(self, task.root, kind)
				cmd.Env = append(os.Environ(), child+"="+task.name)
				return cmd
			}); err != nil {
				return err
			}
		}
		if sdk == "" {
			continue
		}
		if err := best(func() *exec.Cmd {
			cmd := exec.Command("node", "--input-type=module", "-e", vendorScript, task.name, dir, large)
			cmd.Dir = sdk
			cmd.Env = append(os.Environ(), "CLAUDE_CONFIG_DIR="+task.root)
			return cmd
		}); err != nil {
			return err
		}
	}
	return nil
}

// vendorScript measures the vendor's functions as measureHere measures ours.
const vendorScript = `
import { listSessions, getSessionMessages } from '@anthropic-ai/claude-agent-sdk';
const [task, dir, id] = process.argv.slice(1);
const from = performance.now();
const out = task === 'list' ? await listSessions({ dir }) : await getSessionMessages(id, { dir });
const seconds = (performance.now() - from) / 1000;
console.log(JSON.stringify({ by: 'claude-agent-sdk', task, count: out.length, seconds, peak_mb: process.resourceUsage().maxRSS / 1024 }));
`

// best runs a measurement three times and prints the fastest.
func best(command func() *exec.Cmd) error {
	var fastest figure
	for i := range 3 {
		cmd := command()
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", cmd.Path, err)
		}
		var f figure
		if err := json.Unmarshal(out, &f); err != nil {
			return fmt.Errorf("%s printed %q: %w", cmd.Path, out, err)
		}
		if i == 0 || f.Seconds < fastest.Seconds {
			fastest = f
		}
	}
	return measure.Print(fastest)
}

// stored returns the sessions of a directory as those of a store.
func stored(ctx context.Context, root, kind string) (session.Store, error) {
	files := store.NewDir(filepath.Join(root, "projects")) // has the files where the agent has them
	if kind == "dir" {
		return files, nil
	}
	project := path.Base(folder)
	all, err := files.Sessions(ctx, project)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b session.StoredSession) int { return a.Modified.Compare(b.Modified) })
	m := &store.Memory{}
	local := &transcript.Sessions{Vendor: transcript.Claude, Root: root, Dir: dir}
	for _, s := range all {
		if _, err := local.Import(ctx, s.ID, m, transcript.ImportOptions{}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// measureHere measures this library in this process.
func measureHere(task, root, kind string) error {
	ctx := context.Background()
	s := &transcript.Sessions{Vendor: transcript.Claude, Root: root, Dir: dir}
	f := figure{By: strings.TrimSpace("troupe " + kind), Task: task}
	if kind != "" {
		var err error
		if s.Store, err = stored(ctx, root, kind); err != nil {
			return err
		}
	}
	from := time.Now()
	switch task {
	case "list":
		list, err := s.List(ctx, transcript.ListOptions{})
		if err != nil {
			return err
		}
		f.Count = len(list)
	case "read":
		for _, err := range s.Messages(ctx, large, transcript.ShownOptions{}) {
			if err != nil {
				return err
			}
			f.Count++
		}
	default:
		return errors.New("unknown task " + strconv.Quote(task))
	}
	f.Seconds = time.Since(from).Seconds()
	f.PeakMB = peakMB()
	return json.NewEncoder(os.Stdout).Encode(f)
}
