package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/cover"
)

const module = "github.com/agent-troupe/troupe/"

// area is a part of the code that gets a share of the mutants.
type area struct {
	name  string
	dirs  []string
	files []string // of it; nil: all. A name may end in *
	share int      // of each hundred
}

// subject is code that is broken, and the simulations that should notice.
type subject struct {
	areas       []area
	simulations []simulation
}

// subjectOf is the subject with a name, of the flag -of.
func subjectOf(name string) (subject, error) {
	switch name {
	case "runtime":
		return subject{areas(), simulations()}, nil
	case "loop":
		return subject{loopAreas(), loopSimulations()}, nil
	}
	return subject{}, fmt.Errorf("-of %q: there are runtime and loop", name)
}

// loopAreas are those of the embedded agent: what decides about calls of the model and of tools, and
// what is in the log.
func loopAreas() []area {
	return []area{
		{"loop", []string{"agent/embedded"}, []string{
			"agent/embedded/loop.go", "agent/embedded/call*.go", "agent/embedded/failure.go", "agent/embedded/fallback.go", "agent/embedded/usage.go",
			"agent/embedded/tools.go", "agent/embedded/gate.go", "agent/embedded/check.go", "agent/embedded/rewind.go", "agent/embedded/checkpoint.go", "agent/embedded/session.go", "agent/embedded/control.go",
		}, 30},
		{"log and compaction", []string{"agent/embedded"}, []string{
			"agent/embedded/log.go", "agent/embedded/frames.go", "agent/embedded/compact.go", "agent/embedded/space.go", "agent/embedded/noticed.go",
		}, 25},
		{"sub-agents and MCP servers", []string{"agent/embedded", "agent"}, []string{
			"agent/embedded/subagent.go", "agent/embedded/crew.go", "agent/embedded/mcp*.go", "agent/subagents.go", "agent/sidechain.go", "agent/servers.go",
		}, 20},
		{"engine", []string{"agent"}, []string{
			"agent/engine.go", "agent/lane.go", "agent/tool*.go", "agent/turn.go", "agent/history.go", "agent/stored.go", "agent/tasks.go", "agent/strand.go", "agent/live.go", "agent/compact.go",
		}, 25},
	}
}

func areas() []area {
	return []area{
		{"machine", []string{"actors/machine"}, nil, 26},
		{"actors", []string{"actors", "actors/callback", "actors/child", "actors/hooks", "actors/mcp", "actors/mirror", "actors/router", "actors/transport", "actors/user"}, nil, 29},
		{"kernel", []string{"internal/kernel"}, nil, 14},
		{"runtime", []string{"runtime"}, nil, 14},
		{"fleet's machine", []string{"fleet"}, []string{"fleet/machine*"}, 11},
		{"journal", []string{"fleet/journal"}, nil, 6},
	}
}

func (a area) has(s *Site) bool {
	if !slices.Contains(a.dirs, filepath.Dir(s.File)) {
		return false
	}
	return a.files == nil || slices.ContainsFunc(a.files, func(p string) bool {
		ok, _ := filepath.Match(p, s.File) // the patterns are good
		return ok
	})
}

func (j subject) dirs() (dirs []string) {
	for _, a := range j.areas {
		dirs = append(dirs, a.dirs...)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// executed says which lines of the areas each simulation executes.
type executed struct {
	sims   []simulation
	blocks []map[string][]cover.ProfileBlock // of each
}

// coverage runs the simulations, with so many histories in all. 0: what an earlier run has left
// in the directory is taken.
func (j subject) coverage(ctx context.Context, root, dir string, histories int) (executed, error) {
	dirs := j.dirs()
	patterns := make([]string, 0, len(dirs))
	for _, d := range dirs {
		patterns = append(patterns, "./"+d)
	}
	bin := filepath.Join(dir, "covered.test")
	all := executed{sims: j.simulations}
	if histories == 0 {
		err := all.read(dir)
		return all, err
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-cover", "-covermode=set", "-coverpkg="+strings.Join(patterns, ","), "-o", bin, "./simtests")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return executed{}, fmt.Errorf("build the simulations with coverage: %w\n%s", err, out)
	}
	for i, sim := range j.simulations {
		run := exec.CommandContext(ctx, bin, "-test.run="+sim.pattern(), "-test.coverprofile="+profile(dir, i), "-test.timeout=10m")
		run.Dir = filepath.Join(root, "simtests")
		run.Env = append(os.Environ(), fmt.Sprintf("TROUPE_SEEDS=%d", max(1, histories*sim.share/100)))
		if out, err := run.CombinedOutput(); err != nil {
			return executed{}, fmt.Errorf("%s: %w\n%s", sim.name, err, out)
		}
	}
	err := all.read(dir)
	return all, err
}

func profile(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("profile%d", i)) }

// read reads the profiles.
func (x *executed) read(dir string) error {
	for i := range x.sims {
		profiles, err := cover.ParseProfiles(profile(dir, i))
		if err != nil {
			return err
		}
		of := map[string][]cover.ProfileBlock{}
		for _, p := range profiles {
			of[strings.TrimPrefix(p.FileName, module)] = p.Blocks
		}
		x.blocks = append(x.blocks, of)
	}
	return nil
}

// by is the simulations that execute a site.
func (x executed) by(s *Site) (all []simulation) {
	for i, sim := range x.sims {
		if ran(x.blocks[i][s.File], s) {
			all = append(all, sim)
		}
	}
	return all
}

// ran reports whether one of the blocks has the site and was executed.
func ran(blocks []cover.ProfileBlock, s *Site) bool {
	for _, at := range s.block {
		for _, b := range blocks {
			after := at.Line > b.StartLine || at.Line == b.StartLine && at.Column >= b.StartCol
			before := at.Line < b.EndLine || at.Line == b.EndLine && at.Column < b.EndCol
			if after && before {
				return b.Count > 0
			}
		}
	}
	return false
}

// draw chooses n mutants by a seed: each area gets its share, in which every site that is
// executed is as likely as every other.
func (j subject) draw(all []*Site, x executed, seed uint64, n int) []*Site {
	var drawn []*Site
	for _, a := range j.areas {
		var of []*Site
		for _, s := range all {
			if a.has(s) {
				if s.sims = x.by(s); len(s.sims) > 0 {
					of = append(of, s)
				}
			}
		}
		slices.SortFunc(of, func(a, b *Site) int { return cmp.Compare(a.rank(seed), b.rank(seed)) })
		left := (n*a.share + 99) / 100
		for _, s := range of {
			if left > 0 && !crosses(s, drawn) {
				drawn = append(drawn, s)
				left--
			}
		}
		fmt.Fprintf(os.Stderr, "%s: %d sites are executed\n", a.name, len(of))
	}
	return drawn
}

// crosses reports whether a site and one that was drawn change texts of which neither is in
// the other.
func crosses(s *Site, drawn []*Site) bool {
	return slices.ContainsFunc(drawn, func(d *Site) bool {
		if s.File != d.File || s.to <= d.from || d.to <= s.from {
			return false
		}
		inside := s.from >= d.from && s.to <= d.to || d.from >= s.from && d.to <= s.to
		return !inside
	})
}

// inOrder sorts mutants as they were found: in a file the outer before the inner.
func inOrder(all, drawn []*Site) []*Site {
	var sorted []*Site
	chosen := map[*Site]bool{}
	for _, s := range drawn {
		chosen[s] = true
	}
	for _, s := range all {
		if chosen[s] {
			sorted = append(sorted, s)
		}
	}
	return sorted
}
