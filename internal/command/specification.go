package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent/embedded/demo"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/internal/textfile"
	"github.com/agent-troupe/troupe/sdk"
)

// specification is a job as its submitter sends it to workers: data only. It has the flags of troupe
// batch as they were typed, so that a worker reads them as troupe batch does. {"$env": ...} in the file
// of options stands as it is: each worker has its own keys.
type specification struct {
	Protocol int        `json:"protocol"`
	Command  string     `json:"command"` // for the report
	Flags    []specFlag `json:"flags"`
	// Files are the contents of the files that flags name, by the name of the flag.
	Files map[string]string `json:"files,omitempty"`
	Tasks []fleet.Task      `json:"tasks"`
	// Hashes are those of the tasks, as the submitter's version makes them.
	Hashes map[string]string `json:"hashes"`
	Places []place           `json:"places,omitempty"`
}

// specFlag is a flag with its value; "" for a switch.
type specFlag struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// Flags of troupe batch with --nats that stay here, since they say what this program does.
func localFlags() []string {
	own := []string{"format", "template", "set", "id", "out", "events", "quiet", "json", "help", "dry-run", "no-control", "inspect", "ui", "agent", "detach", "attach", "lease", "host-label", "webhook"}
	for _, f := range serverFlags() {
		own = append(own, f.name)
	}
	return own
}

// refusedFlags are those that a job on many machines cannot have, and why.
func refusedFlags() map[string]string {
	worker := "say it to troupe worker: it is a limit of a machine"
	return map[string]string{
		"deferred":    "run the job without --nats: its requests are submitted by one program",
		"concurrency": worker, "starts-per-second": worker, "max-memory": worker, "min-free-disk": worker,
		"resume": "--attach JOB goes on with a job", "estimate": "run the samples without --nats",
	}
}

// fileFlags are the flags whose value may name a file, which travels with the job.
func fileFlags(f specFlag) (path string, is bool) {
	switch f.Name {
	case "config":
		return f.Value, true
	case "settings", "mcp-config":
		return f.Value, !strings.HasPrefix(strings.TrimSpace(f.Value), "{")
	case "verify-prompt":
		return strings.CutPrefix(f.Value, "@")
	case "agent":
		return strings.CutPrefix(f.Value, nameScripted+":")
	}
	return "", false
}

// withFile is the value of a flag with the place of its file.
func (f *specFlag) withFile(path string) string {
	switch f.Name {
	case "verify-prompt":
		return "@" + path
	case "agent":
		return nameScripted + ":" + path
	}
	return path
}

// specify makes the specification of the job that the arguments say. agent is the value of --agent; files
// of workspaces are made in dir.
func (s *settings) specify(ctx context.Context, agent, dir string) (spec *specification, err error) {
	spec = &specification{Protocol: protocolNumber, Command: s.batch.job.Command, Files: map[string]string{}, Tasks: s.batch.job.Tasks, Hashes: map[string]string{}}
	for i := range spec.Tasks {
		hash, err := spec.Tasks[i].Hash()
		if err != nil {
			return nil, &usageError{problem: fmt.Sprintf("task %s: %v", spec.Tasks[i].ID, err)}
		}
		spec.Hashes[spec.Tasks[i].ID] = hash
	}
	flags := []specFlag{{"agent", agent}}
	refused := refusedFlags()
	for _, g := range s.given {
		if why := refused[g.name]; why != "" {
			return nil, &usageError{fmt.Sprintf("--%s is not for a job with --nats", g.name), why}
		}
		made := g.name == "cwd" && s.batch.job.Workspace != nil && s.batch.job.Workspace.Kind != "" // that is packed
		if !slices.Contains(localFlags(), g.name) && !made {
			flags = append(flags, specFlag{g.name, g.value})
		}
	}
	for _, f := range flags {
		if slices.Contains([]string{"cwd", "add-dir", "shared-mcp-dir"}, f.Name) && !filepath.IsAbs(f.Value) {
			return nil, &usageError{fmt.Sprintf("--%s: %q is relative, and workers have other directories", f.Name, f.Value), "give an absolute path that each worker has"}
		}
		if path, is := fileFlags(f); is {
			raw, err := os.ReadFile(path)
			if err == nil {
				raw, err = textfile.Decode(raw)
			}
			if err != nil {
				return nil, &usageError{problem: fmt.Sprintf("--%s: %v", f.Name, err)}
			}
			spec.Files[f.Name], f.Value = string(raw), ""
		}
		spec.Flags = append(spec.Flags, f)
	}
	for i := range spec.Tasks {
		if w := spec.Tasks[i].Workspace; w != nil && w.Kind == "" && w.From != "" && !filepath.IsAbs(w.From) {
			return nil, &usageError{fmt.Sprintf("task %s: workspace.from: %q is relative, and workers have other directories", spec.Tasks[i].ID, w.From), "give an absolute path that each worker has"}
		}
	}
	if err := s.keepsSecrets(spec); err != nil {
		return nil, err
	}
	spec.Places, err = s.pack(ctx, dir)
	return spec, err
}

// files are those of a specification that the servers keep.
func (spec *specification) files() (all []File) {
	for i := range spec.Places {
		if p := &spec.Places[i]; p.Name != "" {
			all = append(all, File{p.Name, p.file})
		}
	}
	return all
}

// keepsSecrets refuses a specification with a value that the report would hide. A flag or a task
// is named, and its value is not.
func (s *settings) keepsSecrets(spec *specification) error {
	hide := s.batch.job.Redactor()
	wrong := func(where string) error {
		return &usageError{where + " has a key or a token, or a header of an MCP server, which would be on the servers' disks",
			`keep it in the environment of the workers; the file of --config names it: {"$env": "${NAME}"}`}
	}
	for _, f := range spec.Flags {
		if hide.Replace(f.Value) != f.Value || hide.Replace(spec.Files[f.Name]) != spec.Files[f.Name] {
			return wrong("--" + f.Name)
		}
	}
	for i := range spec.Tasks {
		raw, err := json.Marshal(&spec.Tasks[i])
		if err != nil {
			return &usageError{problem: fmt.Sprintf("task %s: %v", spec.Tasks[i].ID, err)}
		}
		if hide.Replace(string(raw)) != string(raw) {
			return wrong("task " + spec.Tasks[i].ID)
		}
	}
	return nil
}

// errNewer says that a job needs a later version of this program.
var errNewer = errors.New("the job is of a later version of troupe than this one: install that version here")

// read makes a specification the settings of a program. dir is where its files go.
func (a *app) read(raw []byte, dir string) (*settings, []place, error) {
	var spec specification
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, nil, fmt.Errorf("the specification of the job cannot be read: %w", err)
	}
	if spec.Protocol > protocolNumber {
		return nil, nil, errNewer
	}
	s := a.settings()
	all := batchPage()
	for _, f := range spec.Flags {
		i := slices.IndexFunc(all.flags(), func(known flagSpec) bool { return known.name == f.Name })
		if i < 0 || slices.Contains(localFlags(), f.Name) && f.Name != "agent" || refusedFlags()[f.Name] != "" {
			return nil, nil, fmt.Errorf("--%s: %w", f.Name, errNewer)
		}
		if content, is := spec.Files[f.Name]; is {
			path := filepath.Join(dir, f.Name)
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				return nil, nil, err
			}
			f.Value = f.withFile(path)
		}
		s.given = append(s.given, givenFlag{all.flags()[i], f.Value})
	}
	s.words = []string{"the job"}
	if err := s.complete(); err != nil {
		return nil, nil, err
	}
	if err := s.completeBatch(); err != nil {
		return nil, nil, err
	}
	s.batch.job.Tasks, s.batch.job.Hashes, s.batch.job.Command = spec.Tasks, spec.Hashes, spec.Command
	return s, spec.Places, nil
}

// elsewhere reads the environment of a program whose agents run on other machines, which have the
// keys: a key counts as set.
func elsewhere(getenv func(string) string) func(string) string {
	return func(name string) string {
		if v := getenv(name); v != "" || name == keyVariable || !strings.HasSuffix(name, "_KEY") {
			return v
		}
		return "the workers have it"
	}
}

// chooseElsewhere says which agent the workers start.
func (s *settings) chooseElsewhere(getenv func(string) string) (agent string, err error) {
	typed := s.agent
	if err := s.chooseAgent(elsewhere(getenv)); err != nil {
		return "", err
	}
	if typed == "" && s.agent == demo.Name {
		return "", &usageError{"no agent is installed here, so --nats cannot guess which one the workers have", "say it with --agent"}
	}
	if typed == "" {
		return s.agent, nil
	}
	return typed, nil
}

// expand looks up a variable of a file of options on behalf of other machines: what is not set here
// may be set there.
func expand(name string) (string, bool) {
	if v, ok := os.LookupEnv(name); ok {
		return v, true
	}
	return "set-on-the-workers:" + name, true
}

// loadElsewhere is the option of [sdk.LoadOptionsFile] for a job that runs elsewhere.
func loadElsewhere() sdk.LoadOption { return sdk.ExpandWith(expand) }
