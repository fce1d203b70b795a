package embedded

import (
	"bytes"
	"net/http"
	"slices"
	"sync"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/policy"
)

// shared is what the sessions of a backend have in common, so that none of them has it for
// itself. It is safe for concurrent use; what it gives out is only read.
type shared struct {
	api  string // the name of the model's codec
	once sync.Once

	subs             [][]*tool    // tools of sub-agents, without and with TodoWrite
	boxes            []box        // without and with commands in the background, each without and with TodoWrite
	init, initialize agent.Object // of system/init, and of the answer to initialize
	reads, edits     []string     // rules for commands
	kinds            []*kind      // of sub-agents that are always there

	mu       sync.Mutex
	policies []common
	lists    []toolList
	environs [][]string // environments of commands
	named    [][]string // names of tools

	startups startups

	pages pages
	http  *http.Client // for the endpoints of users; nil until one is asked
}

// common is a policy at the places of some session.
type common struct {
	allow, ask, deny []string
	compiled         *policy.Policy
}

// maxShared is how many of each kind are kept. Beyond that all are forgotten.
const maxShared = 64

// made makes what is the same for all.
func (s *shared) made() *shared {
	s.once.Do(func() {
		for _, background := range []bool{false, true} {
			for _, older := range []bool{false, true} {
				s.boxes = append(s.boxes, newBox(background, older))
				if !background {
					s.subs = append(s.subs, newBox(background, older).tools)
				}
			}
		}
		s.reads, s.edits = readOnly(), append(editing(), readOnly()...)
		s.kinds = ownKinds()
		s.init = agent.Object{
			"agent": Name, "apiKeySource": "none", "slash_commands": []any{"compact"}, "agents": []any{}, "skills": []any{}, "plugins": []any{},
		}
		s.initialize = agent.Object{
			"commands": []any{agent.Object{"name": "compact", "description": "Replaces the conversation by a summary", "argumentHint": "[what the summary must have]"}}, "agents": []any{}, "agent": Name,
			"account": agent.Object{"tokenSource": "none", "apiKeySource": "none", "apiProvider": s.api},
		}
		s.init, s.initialize = withAgents(s.init, s.initialize, s.kinds)
	})
	return s
}

// toolbox are the agent's own tools. background says whether commands can run in the
// background, older that TodoWrite stands in place of tasks.
func (s *shared) toolbox(background, older bool) box {
	i := 0
	if background {
		i = 2
	}
	if older {
		i++
	}
	return s.boxes[i]
}

// box are tools, with the names of those that are always offered, and of those beside them that
// need a host that answers.
type box struct {
	tools         []*tool
	names, asking []string
}

// offered are the names of the tools that are offered if the host answers, if a rule allows web
// pages, and if there are skills.
func offered(box []*tool, asker, web, skills bool) []string {
	return namesOf(slices.DeleteFunc(slices.Clone(box), func(t *tool) bool {
		return t.asker && !asker || t.byRule && !web || t.bySkills && !skills
	}))
}

func newBox(background, older bool) box {
	todo := taskTools()
	if older {
		todo = []*tool{todoWrite()}
	}
	tools := toolbox(background, todo)
	return box{tools, offered(tools, false, false, false), offered(tools, true, false, false)}
}

// policy compiles rules at the places of a session. Rules that another session has, too, are
// compiled once, but for their paths. It is nil if the rules have a mistake.
func (s *shared) policy(r policy.Rules) *policy.Policy {
	is := func(c common) bool {
		return slices.Equal(c.allow, r.Allow) && slices.Equal(c.ask, r.Ask) && slices.Equal(c.deny, r.Deny)
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.policies, is)
	var known *policy.Policy
	if i >= 0 {
		known = s.policies[i].compiled
	}
	s.mu.Unlock()
	if known != nil {
		if here, err := known.At(r); err == nil {
			return here
		}
		return nil
	}
	compiled, err := policy.Compile(r)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policies = append(room(s.policies), common{r.Allow, r.Ask, r.Deny, compiled})
	return compiled
}

// toolList is a list of tools as the codec encodes it.
type toolList struct {
	first   *tool // of the toolbox
	names   []string
	mcp     []agent.MCPToolInfo
	output  []byte // the schema of the structured output
	kinds   string // of sub-agents
	encoded []byte
}

// is reports whether another list is the same.
func (l *toolList) is(o *toolList) bool {
	return l.first == o.first && l.kinds == o.kinds && slices.Equal(l.names, o.names) && bytes.Equal(l.output, o.output) && sameTools(l.mcp, o.mcp)
}

func sameTools(a, b []agent.MCPToolInfo) bool {
	return slices.EqualFunc(a, b, func(a, b agent.MCPToolInfo) bool {
		return a.Server == b.Server && a.Name == b.Name && bytes.Equal(a.Tool, b.Tool)
	})
}

// tools returns a list, which encode encodes if no other session has it.
func (s *shared) tools(l toolList, encode func() []byte) []byte {
	find := func() []byte {
		for i := range s.lists {
			if s.lists[i].is(&l) {
				return s.lists[i].encoded
			}
		}
		return nil
	}
	s.mu.Lock()
	known := find()
	s.mu.Unlock()
	if known != nil {
		return known
	}
	l.encoded = encode()
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := find(); known != nil {
		return known // another session was faster
	}
	s.lists = append(room(s.lists), l)
	return l.encoded
}

// environ returns the environment, or the same one of another session.
func (s *shared) environ(env []string) []string { return s.equal(&s.environs, env) }

// names returns the names of tools, or the same ones of another session.
func (s *shared) names(of []string) []string { return s.equal(&s.named, of) }

// equal returns list, or an equal one that is in all.
func (s *shared) equal(all *[][]string, list []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range *all {
		if slices.Equal(known, list) {
			return known
		}
	}
	*all = append(room(*all), list)
	return list
}

// room is list if another one may be kept, else an empty one.
func room[T any](list []T) []T {
	if len(list) == maxShared {
		return nil
	}
	return list
}
