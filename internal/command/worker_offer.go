package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
)

// lacking says why a machine cannot run a job as it is now: something is to be installed.
type lacking struct{ what string }

func (e *lacking) Error() string { return e.what }

// offers are the releases of the agents that a machine has, by the names of the agents.
type offers struct {
	mu    sync.Mutex
	known map[string]offer
}

// offer is a program, as it was when it was asked for its release.
type offer struct {
	path    string
	size    int64
	changed time.Time
	release string // "": it does not say
}

// versionLimit is how long an agent may take to say which release it is.
const versionLimit = 10 * time.Second

// releases asks the programs that have changed since the last call.
func (o *offers) releases(ctx context.Context, getenv func(string) string) map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all, known := map[string]string{}, map[string]offer{}
	for _, d := range []dialect.Dialect{claude.New(), qoder.New()} {
		path := programOf(d.Traits(), getenv)
		st, err := os.Stat(path)
		if path == "" || err != nil {
			continue
		}
		of := o.known[d.Name()]
		if of.path != path || of.size != st.Size() || !of.changed.Equal(st.ModTime()) {
			of = offer{path, st.Size(), st.ModTime(), releaseOf(ctx, path)}
		}
		if known[d.Name()] = of; of.release != "" {
			all[d.Name()] = of.release
		}
	}
	o.known = known
	return all
}

// releaseOf asks a program for its release; "": it does not say.
func releaseOf(ctx context.Context, path string) string {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return ""
	}
	return releaseForm.FindString(string(out))
}

var (
	releaseForm = regexp.MustCompile(`\d+\.\d+\.\d+\S*`)
	wantedForm  = regexp.MustCompile(`^(>=)?\d+\.\d+\.\d+$`)
)

// setAgentVersion takes the release that a job asks for.
func setAgentVersion(s *settings, v string) error {
	if !wantedForm.MatchString(v) {
		return fmt.Errorf("%q is no release: write 2.1.329, or \">=2.1.300\" for that one and later ones", v)
	}
	s.machines.agentVersion = v
	return nil
}

// suits reports whether a release is one that a job asks for; "": any.
func suits(release, wanted string) bool {
	least, later := strings.CutPrefix(wanted, ">=")
	switch {
	case wanted == "":
		return true
	case later:
		return release != "" && slices.Compare(parts(release), parts(least)) >= 0
	}
	return release == wanted
}

// parts are the numbers of a release, as far as they are numbers.
func parts(release string) []int {
	all := make([]int, 3)
	for i, part := range strings.SplitN(release, ".", 3) {
		end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(part)
		}
		all[i], _ = strconv.Atoi(part[:end])
	}
	return all
}

// lacks says what a machine lacks for an agent; "": nothing.
func lacks(agent, wanted string, installed []string, releases map[string]string) string {
	switch release := releases[agent]; {
	case !isProgram(agent):
	case !slices.Contains(installed, agent):
		return agent + " is not installed on this machine (not on PATH)"
	case !suits(release, wanted):
		return fmt.Sprintf("%s is %s on this machine, and the job asks for %s", agent, cmp.Or(release, "a release that it does not say"), wanted)
	}
	return ""
}

// isProgram reports whether an agent is a separate program, which machines may lack.
func isProgram(agent string) bool { return agent == claude.Name || agent == qoder.Name }

// unrun says why no worker runs a job; "": one does, or may.
func unrun(e *JobEntry, hosts []HostEntry) string {
	var all []string
	for i := range hosts {
		h, why := &hosts[i], ""
		at := slices.IndexFunc(h.Jobs, func(j HostJob) bool { return j.Job == e.Job })
		switch {
		case h.Draining:
			why = "it ends"
		case !fits(h.Labels, e.Labels):
			why = "it lacks a label of the job"
		case h.Protocol < e.Protocol:
			why = errNewer.Error()
		case at >= 0:
			why = h.Jobs[at].Why
		}
		if why == "" {
			return ""
		}
		all = append(all, h.Host+": "+why)
	}
	if len(all) == 0 {
		return "there is no worker"
	}
	return strings.Join(all, "; ")
}

// unrunEvery is how often a program that follows a job looks whether a worker runs it.
const unrunEvery = 3 * time.Second

// tellUnrun says when no worker can run a job that is followed, and why, until ctx ends. It looks twice, since
// a worker may be about to take the job.
func (s *settings) tellUnrun(ctx context.Context, c *console, cluster Cluster, e *JobEntry) {
	look := time.NewTicker(unrunEvery)
	defer look.Stop()
	for last, told := "", ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		hosts, err := cluster.Hosts(ctx)
		if err != nil {
			continue // the servers are away, and what takes the results waits, too
		}
		why := unrun(e, hosts)
		if why == last && why != told {
			if told = why; why != "" {
				c.note("job %s: no worker can run it: %s", e.Job, printable(why))
			}
		}
		last = why
	}
}
