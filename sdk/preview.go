package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/optionfile"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// LaunchPreview shows how a session would start its agent, and the first requests that
// it would send. Secrets are masked, so it may be shown to people.
type LaunchPreview struct {
	// Backend is the backend that the values are for: claude or qoder.
	Backend string `json:"backend"`
	// Path is the path of the program; "": the first of Names on the agent's PATH.
	Path  string   `json:"path,omitempty"`
	Names []string `json:"names,omitempty"` // names to look up, best first
	// Interpreter is the program that runs Path, if Path is a script.
	Interpreter []string `json:"interpreter,omitempty"`
	// Args are the agent's arguments. {{file:NAME}} is a placeholder for the path of one
	// of Files.
	Args []string `json:"args"`
	// Dir is the working directory; "": the caller's.
	Dir string `json:"dir,omitempty"`
	// Env are the variables that are added to those of this process, Unset those that
	// are removed. With CleanEnv the agent gets no variables of this process.
	Env      []PreviewVar `json:"env"`
	Unset    []string     `json:"unset,omitempty"`    // names of variables
	CleanEnv bool         `json:"cleanEnv,omitempty"` // true: Env is the whole environment
	// Files are written for the agent with mode 0600, and removed when it has ended.
	Files []PreviewFile `json:"files,omitempty"`
	// Initialize is the first control request. Requests are the control requests that
	// follow its answer.
	Initialize json.RawMessage   `json:"initialize"`
	Requests   []json.RawMessage `json:"requests,omitempty"` // in order
	// Timeouts are Troupe's time limits. The agent's own limits are not included.
	Timeouts []PreviewTimeout `json:"timeouts"`
	// Warnings are options that are valid but perhaps do not do what you intend.
	Warnings []session.Warning `json:"warnings,omitempty"`
}

// PreviewVar is a variable of the agent's environment.
type PreviewVar struct {
	Name  string `json:"name"`  // without the equals sign
	Value string `json:"value"` // masked if it is a secret
}

// PreviewFile is a file that is written for the agent.
type PreviewFile struct {
	Name    string          `json:"name"`    // the NAME of {{file:NAME}} in Args
	Reason  string          `json:"reason"`  // why it is a file and not an argument
	Size    int             `json:"size"`    // length of the content, in bytes
	Content json.RawMessage `json:"content"` // secrets are masked
}

// Masked replaces a secret in a [LaunchPreview].
const Masked = "***"

// PreviewLaunch returns what a session with the options o would start and send first. It
// starts nothing, and searches no program unless Options.Backend is nil. It reads the
// files that the options name. It returns the same errors as opening a session: a
// *[ConfigError] for each option that cannot work.
func PreviewLaunch(o *Options) (*LaunchPreview, error) {
	spec, err := specOf(o)
	if err != nil {
		return nil, err
	}
	servers := newServers(&spec)
	p, err := spec.Preview()
	if err = errors.Join(err, servers.close(context.Background())); err != nil {
		return nil, err
	}
	l := p.Launch
	out := &LaunchPreview{
		Backend: spec.Dialect.Name(), Path: l.Path, Interpreter: l.Interpreter, Args: maskedArgs(o, l.Args), Dir: l.Dir,
		Unset: l.Unset, CleanEnv: l.CleanEnv, Warnings: p.Warnings,
		Initialize: masked(p.Initialize, maskRequest), Env: make([]PreviewVar, 0, len(l.Env)),
	}
	if l.Path == "" {
		out.Names = l.Names
	}
	for _, v := range l.Env {
		out.Env = append(out.Env, previewVar(v))
	}
	for _, f := range l.Files {
		out.Files = append(out.Files, PreviewFile{Name: f.Name, Reason: f.Reason, Size: len(f.Content),
			Content: masked(f.Content, maskFile)})
	}
	for _, raw := range p.Requests {
		out.Requests = append(out.Requests, masked(raw, maskRequest))
	}
	out.Timeouts = previewTimeouts(o, p)
	return out, nil
}

// maskedArgs are the arguments without the values of ExtraArgs, which may be secrets.
func maskedArgs(o *Options, args []string) []string {
	out := slices.Clone(args)
	for key, extra := range o.ExtraArgs { //troupe:maporder each has a flag of its own
		value, given := extra.Value()
		if !given || value == "" {
			continue
		}
		flag := "--" + key
		for i, arg := range args {
			switch {
			case arg == flag+"="+value:
				out[i] = flag + "=" + Masked
			case i > 0 && args[i-1] == flag && arg == value:
				out[i] = Masked
			}
		}
	}
	return out
}

func previewVar(v dialect.EnvVar) PreviewVar {
	if v.Secret {
		return PreviewVar{v.Name, Masked}
	}
	return PreviewVar{v.Name, v.Value}
}

// masked is a document after mask has hidden what is secret in it.
func masked(raw []byte, mask func(*optionfile.Node)) json.RawMessage {
	n, err := optionfile.ParseJSON(raw)
	if err != nil {
		n = &optionfile.Node{Kind: optionfile.Text, Text: Masked}
	} else {
		mask(n)
	}
	return n.JSON()
}

// maskRequest hides what stands under keys that can hold a secret.
func maskRequest(n *optionfile.Node) {
	secret := []string{"env", "headers", "headersHelper", "oauth", "args", "managedSettings", "modelRequestPatches", "proxy"}
	for _, p := range n.Pairs {
		switch {
		case p.Key.Text == "mcpServers":
			maskServers(p.Value)
			for _, servers := range p.Value.List { // those of a subagent
				maskServers(servers)
			}
		case slices.Contains(secret, p.Key.Text):
			maskAll(p.Value)
		default:
			maskRequest(p.Value)
		}
	}
	for _, item := range n.List {
		maskRequest(item)
	}
}

// maskFile hides all but what is known to hold no secret: the document is in a
// file because it can hold some.
func maskFile(n *optionfile.Node) {
	for _, p := range n.Pairs {
		switch p.Key.Text {
		case "mcpServers":
			maskServers(p.Value)
		case "sandbox":
			maskBut(p.Value, "enabled", "failIfUnavailable", "autoAllowBashIfSandboxed", "excludedCommands",
				"allowUnsandboxedCommands", "network", "filesystem", "ignoreViolations", "enableWeakerNestedSandbox")
		case "type", "model", "outputStyle", "permissions", "general", "securityScan", "jobTokenProvider", "serviceAccountTokenProvider":
		default:
			maskAll(p.Value)
		}
	}
}

func maskServers(n *optionfile.Node) {
	for _, p := range n.Pairs {
		maskBut(p.Value, "type", "command", "url", "tools", "toolOverrides", "timeout", "alwaysLoad")
		for _, field := range p.Value.Pairs {
			if field.Key.Text == "url" && field.Value.Kind == optionfile.Text {
				field.Value.Text = maskedURL(field.Value.Text)
			}
		}
	}
}

func maskBut(n *optionfile.Node, plain ...string) {
	for _, p := range n.Pairs {
		if !slices.Contains(plain, p.Key.Text) {
			maskAll(p.Value)
		}
	}
}

func maskAll(n *optionfile.Node) {
	switch n.Kind {
	case optionfile.Text:
		n.Text = Masked
	case optionfile.Number:
		n.Kind, n.Text = optionfile.Text, Masked
	}
	for _, item := range n.List {
		maskAll(item)
	}
	for _, p := range n.Pairs {
		maskAll(p.Value)
	}
}

// maskedURL hides who logs in, and what is asked for.
func maskedURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return Masked
	}
	if u.User != nil {
		u.User = url.User(Masked)
	}
	if u.RawQuery != "" {
		u.RawQuery = Masked
	}
	if u.Fragment != "" {
		u.Fragment = Masked
	}
	return strings.ReplaceAll(u.String(), url.PathEscape(Masked), Masked)
}

// PreviewTimeout is one time limit of a session. In JSON the limit is a text such as
// "1m30s"; "0s" means no limit.
type PreviewTimeout struct {
	What string // what the limit is for, as in TimeoutError.What
	// Limit is the longest time; 0: no limit.
	Limit time.Duration
	// Option is the option that sets the limit, as in TimeoutError.SetBy; "": no option
	// sets it.
	Option string
	// Default says that the option was not given, so that Limit is its default.
	Default bool
}

type plannedTimeout struct {
	What    string `json:"what"`
	Limit   string `json:"limit"`
	Option  string `json:"option,omitempty"`
	Default bool   `json:"default,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (t PreviewTimeout) MarshalJSON() ([]byte, error) {
	return json.Marshal(plannedTimeout{t.What, t.Limit.String(), t.Option, t.Default})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *PreviewTimeout) UnmarshalJSON(raw []byte) error {
	var p plannedTimeout
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	limit, err := time.ParseDuration(p.Limit)
	*t = PreviewTimeout{p.What, limit, p.Option, p.Default}
	return err
}

// timeouts are the plan's, under the names of the options that the caller gave,
// and those of this package.
func previewTimeouts(o *Options, p *runtime.Preview) []PreviewTimeout {
	all := make([]PreviewTimeout, 0, len(p.Timeouts)+1)
	for _, t := range p.Timeouts {
		all = append(all, PreviewTimeout(t))
	}
	return append(all, PreviewTimeout{"close: all of it", max(closeTimeout(o), 0), "CloseTimeout", o.CloseTimeout == 0})
}
