package embedded

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/session"
)

// program is the agent of one session.
type program struct {
	cfg       *Config
	shared    *shared
	seams     backend.Seams
	unset     []string // variables that Options.UnsetEnv names
	web       bool     // a rule allows WebFetch
	asker     bool     // the host answers questions
	agents    []*kind  // of Options.Agents
	asksModel bool     // Options.ResolveModel is set

	servers  map[string]session.MCPServerConfig // external MCP servers
	mustAsk  []string                           // MCP tools that are asked about in every mode
	timeouts map[string]time.Duration           // of calls of the host's servers; 0: none
	logins   *logins

	confined *confined // nil: commands are not confined
}

// AgentName implements [agent.Program].
func (*program) AgentName() string { return Name }

// Serve implements [agent.Program].
func (p *program) Serve(l agent.Launch, port agent.Port) agent.Exit { return p.open(l, port).Run() }

// Open implements [agent.Opener].
func (p *program) Open(asked agent.Program, l agent.Launch, port agent.Port) agent.Player {
	if asked != agent.Program(p) {
		return nil
	}
	return p.open(l, port)
}

func (p *program) open(l agent.Launch, port agent.Port) *conversation {
	l.Dir = workdir(l.Dir)
	l.Args = slices.Clone(l.Args)
	for i, arg := range l.Args {
		for _, flag := range []string{"--model=", "--fallback-model="} {
			if names, is := strings.CutPrefix(arg, flag); is {
				l.Args[i] = flag + p.cfg.namedAll(names)
			}
		}
	}
	dir := folder(p.cfg.Dir, l.Getenv)
	from := resumption{at: lastOf(l.Args, "--resume-session-at="), drops: lastOf(l.Args, "--resume-drops-turn=")}
	from.goesOn = l.Getenv(goesOnEnv) == "1"
	if from.latest = slices.Contains(l.Args, "--continue") && lastOf(l.Args, "--resume=") == ""; from.latest {
		id := latest(filepath.Join(dir, filepath.Dir(fileOf(l.Dir, ""))))
		l.Args = append(l.Args, "--resume="+cmp.Or(id, "none"))
	}
	all := p.shared.made()
	t := &talk{cfg: p.cfg, shared: p.shared, seams: p.seams, rng: rand.New(rand.NewPCG(l.Seed, 1)), limited: slices.ContainsFunc(l.Args, limitsCost)}
	t.mustAsk, t.timeouts = p.mustAsk, p.timeouts
	t.counted = lastOf(l.Args, "--max-turns=") != ""
	t.effort, t.thinking = lastOf(l.Args, "--effort="), thinkingOf(l.Args)
	t.asksModel = p.asksModel
	t.fallback = fallbackOf(lastOf(l.Args, "--fallback-model="))
	t.retries = retriesOf(p.cfg.Retries, l.Getenv("CLAUDE_CODE_MAX_RETRIES"))
	seams := p.seams
	if p.confined != nil {
		seams.Spawner = limited{seams.Spawner, p.confined}
	}
	t.hands = newHands(l, seams, p.private)
	t.hands.model, t.hands.name = p.cfg.Model, cmp.Or(lastOf(l.Args, "--model="), p.cfg.Name)
	t.hands.countless = p.asksModel // the host has not chosen this endpoint for the text of files
	t.hands.textOnly = func(name string) bool { return p.cfg.Profiles.Model(name).TextOnly }
	t.background = !t.hands.switchedOn("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")
	t.hands.env, t.hands.startups = all.environ(t.hands.env), &all.startups
	box := all.toolbox(t.background, t.hands.switchedOff("CLAUDE_CODE_ENABLE_TASKS"))
	t.box = box.tools
	names := box.names
	switch skills := len(p.cfg.Skills) > 0; {
	case p.web || skills:
		names = offered(box.tools, p.asker, p.web, skills)
	case p.asker:
		names = box.asking
	}
	t.crew, t.kinds = &crew{}, all.kinds
	info, more := all.init, all.initialize
	if len(p.agents) > 0 || len(p.cfg.AgentDirs) > 0 {
		t.kinds = withKinds(withKinds(t.kinds, readKinds(p.cfg.AgentDirs, l.Dir, t.hands.disk)), p.agents)
		info, more = withAgents(info, more, t.kinds)
	}
	t.log = &log{codec: p.cfg.Model.Codec(), dir: dir, keep: !slices.Contains(l.Args, "--no-session-persistence"), from: from}
	if l.Getenv(checkpointing) == "true" && t.log.stores() {
		t.points = &points{dir: dir, root: t.hands.real, copied: map[string]fs.FileInfo{}}
		t.log.points, t.hands.written = t.points, map[string]uint64{}
	}
	t.log.file.disk, t.log.knows, t.log.opens = p.seams.Disk, t.hands.remember, t.hands.openLog
	t.log.takes = t.hands.takes
	own := &servers{hands: t.hands, seams: p.seams, logins: p.logins}
	return &conversation{t.hands, own, &t.log.file, agent.Open(l, port, agent.Config{
		Dialect:   agent.Claude,
		Model:     cmp.Or(p.cfg.named(p.cfg.Name), lastOf(l.Args, "--model=")),
		Turn:      t.turn,
		Continue:  t.goOn,
		Control:   t.control,
		History:   t.log,
		Executor:  p.seams.Exec,
		AfterFunc: func(d time.Duration, fn func()) func() bool { return p.seams.Clock.AfterFunc(d, fn).Stop },
		Now:       p.seams.Clock.Now,
		Live: &agent.Live{Tools: names, Used: t.used, Answered: t.answered, Effort: t.thinks, Dir: dir, File: func(id string) string { return fileOf(l.Dir, id) },
			Cwd:       t.hands.dir,
			Continues: t.log.goesOn,
			Servers:   own.of(p.servers, l.Getenv), NewServer: own.replace, KnownTools: func(name string) []json.RawMessage { return t.log.servers[name] }},
		Init: info, Initialize: more,
	})}
}

func limitsCost(arg string) bool { return strings.HasPrefix(arg, "--max-budget-usd") }

// conversation removes what its tools have kept when it has ended.
type conversation struct {
	hands   *hands
	servers *servers
	file    *file
	*agent.Conversation
}

// Run runs it to its end.
func (c *conversation) Run() agent.Exit {
	defer c.end()
	return c.Conversation.Run()
}

// Play implements [agent.Player].
func (c *conversation) Play() (x agent.Exit, ended bool) {
	ended = true // also if it panics
	defer func() {
		if ended {
			c.end()
		}
	}()
	return c.Conversation.Play()
}

func (c *conversation) end() {
	c.file.close(true)
	c.servers.end()
	c.hands.remove()
}

// talk is one conversation: the session's, or that of a sub-agent. Everything in it belongs to
// the engine's coroutines, one at a time, but for hands.
type talk struct {
	up         *talk // the conversation that has started this sub-agent; nil in the session's
	kind       *kind // of the sub-agent
	kinds      []*kind
	crew       *crew    // of the session
	toolsUsed  []string // by the sub-agent, in the order of their names
	tally      tally
	cfg        *Config
	shared     *shared
	seams      backend.Seams
	rng        *rand.Rand // jitter
	limited    bool       // by MaxBudgetUSD
	counted    bool       // calls of a turn, by MaxTurns
	effort     string     // of the options; "": the model's default
	thinking   int        // tokens; 0: the model's default, below 0: none
	retries    int        // of a request that may succeed later
	fallback   fallback
	mustAsk    []string // MCP tools that are asked about in every mode
	timeouts   map[string]time.Duration
	asksModel  bool   // the host chooses the model of each call
	chosen     choice // for the call that is made
	background bool   // commands can run in the background
	hands      *hands
	gates      *gates // of the turn's last batch of calls; nil before its first

	log      *log
	system   []string // nil before the first request
	box      []*tool  // the agent's own tools
	tools    []byte   // of the codec, for the list in named
	named    []string // names of the tools in tools
	offers   []string // names of the tools of the turn, with those that are seen late
	mcp      []agent.MCPToolInfo
	listed   bool // for the turn; a sub-agent has one list
	calls    int  // of the model in the turn
	guard    guard
	turnOf   *agent.Turn
	began    time.Time     // of the turn
	inAPI    time.Duration // of the turn
	spent    model.Usage   // of the turn
	first    firsts        // of the turn
	output   shaped        // of the turn
	loaded   []string      // texts of skills for the model, behind the results of the calls
	stops    int           // answers of the turn that the provider has stopped
	checking checking

	points  *points // the log's
	useless int     // compactions in a row that have failed, or have not helped

	retracted []string // frames of an answer that is not part of the conversation, until another takes its place
	all       []used   // of the session, by model, in the order of their first answers
}

// used is what one model has used.
type used struct {
	model           string
	usage, fresh    model.Usage // fresh: since the last result
	cost, freshCost float64
}

// private reports whether commands do not get this variable, neither from the environment nor
// from ~/.bashrc: it has a key, or the options name it.
func (p *program) private(variable string) bool {
	return slices.Contains(p.unset, variable) || p.cfg.withholds(variable)
}

func (c *Config) withholds(variable string) bool {
	switch variable {
	case "TROUPE_MODEL_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS":
		return true
	}
	return slices.ContainsFunc(c.Profiles.Servers, func(s model.ServerProfile) bool { return s.KeyName == variable })
}

// newHands are the hands of an agent that was started like that. Its commands do not get
// private variables.
func newHands(l agent.Launch, seams backend.Seams, private func(variable string) bool) *hands {
	root := l.Dir
	if at, err := filepath.EvalSymlinks(root); err == nil {
		root = at
	}
	h := &hands{root: l.Dir, real: root, cwd: l.Dir, private: private, seams: seams, disk: seams.Disk, read: map[string]*known{}}
	h.options = addedDirs(l.Args)
	h.add(nil)
	for _, kv := range l.Env {
		if name, _, _ := strings.Cut(kv, "="); !private(name) && name != readsState && name != checkpointing && name != goesOnEnv {
			h.env = append(h.env, kv)
		}
	}
	h.env = append(h.env, ofCommands()...)
	return h
}

// readsState tells the agent, and not its commands, that the host reads frames about the
// session's state.
const readsState = "CLAUDE_CODE_SDK_READS_SESSION_STATE"

// goesOnEnv has a session that is resumed make the request again that it had made before, so that a
// batch which has the answer is found. Package fleet sets it.
const goesOnEnv = "TROUPE_EMBEDDED_CONTINUES"

// ofCommands is what the environment of commands has besides that of the session: that they
// are an agent's, and nothing that waits for a person.
func ofCommands() []string {
	return []string{
		"CLAUDECODE=1", "AI_AGENT=troupe", "CLAUDE_CODE_CHILD_SESSION=1", "CLAUDE_CODE_SESSION_ATTENDED=0",
		"GIT_EDITOR=true", "COREPACK_ENABLE_AUTO_PIN=0", "NoDefaultCurrentDirectoryInExePath=1",
	}
}

// addedDirs are the directories that the options add to the working directory.
func addedDirs(args []string) (dirs []string) {
	for _, a := range args {
		if dir, ok := strings.CutPrefix(a, "--add-dir="); ok {
			dirs = append(dirs, dir)
		}
	}
	return followed(dirs)
}

// followed are directories with their links followed. One that is not absolute is left out.
func followed(dirs []string) (all []string) {
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue
		}
		if at, err := filepath.EvalSymlinks(dir); err == nil {
			dir = at
		}
		all = append(all, filepath.Clean(dir))
	}
	return all
}
